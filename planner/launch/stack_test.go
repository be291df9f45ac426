package launch_test

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner/launch"
)

// TestStacks: every framework names a training stack that package stack knows, in the version that it writes for, or of its date.
func TestStacks(t *testing.T) {
	for _, f := range launch.Frameworks() {
		s, err := stack.Parse(f.Stack)
		if err != nil || !s.Known() || s.Canonical() != f.Stack {
			t.Errorf("%s: stack %q is %q, %v", f.Name, f.Stack, s.Canonical(), err)
			continue
		}
		name, version, _ := strings.Cut(f.Stack, "@")
		of := stack.Of(f.Stack, "Hopper")
		if !of.Stated() || of.Name != name {
			t.Errorf("%s: %q may be %d stacks", f.Name, f.Stack, of.N)
		}
		if of.Stacks[0].Version == "" { // dated
			version = map[string]string{"2025-10": "0.2"}[version]
		}
		if version == "" || !strings.Contains(f.Version, " "+version+" ") {
			t.Errorf("%s: stack %q, but settings for %s", f.Name, f.Stack, f.Version)
		}
	}
}
