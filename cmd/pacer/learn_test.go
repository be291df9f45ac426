package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestLearnFlags: what learn is told it tells the simulation by its name, so a flag of
// its own may not be called as one of simulate that means something else.
func TestLearnFlags(t *testing.T) {
	for _, f := range learnDL2Command().Flags {
		name := f.Names()[0]
		if !simulateHas(name) {
			continue
		}
		all := slices.Concat(simulateCommand().Flags, globalFlags())
		same := all[slices.IndexFunc(all, func(g cli.Flag) bool { return g.Names()[0] == name })]
		if got, want := fmt.Sprintf("%T", f), fmt.Sprintf("%T", same); got != want {
			t.Errorf("--%s of learn is a %s, of simulate a %s", name, got, want)
		}
	}
}
