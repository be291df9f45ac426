package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestGolden compares outputs that come from embedded data alone with those kept
// in testdata/golden. PACER_BIN names a binary that is built already.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	if runtime.GOARCH != "amd64" {
		spectest.Lacks(t, "the last digits of figures are those of amd64")
	}
	groups, err := parseList(commandList)
	if err != nil {
		t.Fatal(err)
	}
	table, err := parseRenames(renameTable)
	if err != nil {
		t.Fatal(err)
	}
	binary := os.Getenv("PACER_BIN")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "pacer")
		// Without -trimpath, so that packages are not compiled once more than for other tests.
		if err := build(t.Context(), "../..", binary, []string{"build", "-buildvcs=false"}); err != nil {
			t.Fatal(err)
		}
	}
	table.added = nil // fields that are new are kept too
	t.Setenv("PACER_SHARED", "")
	r, err := newRunner(binary, false, table, "", 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if !g.Golden {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			outcomes, err := r.run(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			spectest.Golden(t, filepath.Join("testdata", "golden", g.Name+".txt"), render(outcomes, table))
		})
	}
}

// whole is how many values of an output are kept as they are. Of more only a
// checksum is.
const whole = 80

// render writes outcomes down, a value per line below its command.
func render(outcomes []outcome, table *renames) []byte {
	var b bytes.Buffer
	for _, o := range outcomes {
		fmt.Fprintf(&b, "$ %s\n", o.Command)
		rest, n := sha256.New(), 0
		for _, l := range canonical(o, table, false) {
			switch {
			case l.value == "any":
			case n < whole:
				fmt.Fprintf(&b, "%s\t%s\n", l.path, l.value)
				n++
			default:
				fmt.Fprintf(rest, "%s\t%s\n", l.path, l.value)
				n++
			}
		}
		if n > whole {
			fmt.Fprintf(&b, "and %d more\t%x\n", n-whole, rest.Sum(nil)[:8])
		}
	}
	return b.Bytes()
}

func TestRenames(t *testing.T) {
	table, err := parseRenames(`
# comment
flag | --policy | --scheduler
flag | --gone | - | a remark
option | late | late-cap | pacer
field | why | reason
field | - | plan_parts
name | las | attained
expected | exit: 3 -> 2 | an unknown name
`)
	if err != nil {
		t.Fatal(err)
	}
	got := table.arguments([]string{"simulate", "--policy", "pacer:span=1:late=2,las:late=3", "--gone", "5", "--gone=6", "-o", "json"})
	want := []string{"simulate", "--scheduler", "pacer:span=1:late-cap=2,attained:late=3", "-o", "json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	old := canonical(outcome{Command: "pacer ls -o json", Stdout: []byte(`{"why": "x", "n": 1.50, "elapsed_s": 3}`)}, table, true)
	new := canonical(outcome{Command: "pacer ls -o json", Stdout: []byte(`{"reason": "y", "n": 1.50, "elapsed_s": 4, "plan_parts": {}}`)}, table, false)
	if found := differences(old, new); found != nil {
		t.Error(found)
	}
	new = canonical(outcome{Command: "pacer ls -o json", Exit: 1, Stdout: []byte(`{"reason": "", "n": 1.5}`)}, table, false)
	if found := differences(old, new); len(found) != 4 {
		t.Errorf("%q, want four: exit, n, reason, elapsed_s", found)
	}
	if !table.wanted("usage: pacer plan -m x: exit: 3 -> 2") || table.wanted("exit: 3 -> 1") {
		t.Error("the wrong differences are wanted")
	}
}

func TestTable(t *testing.T) {
	for _, text := range []string{"colour | a | b", "flag | a", "expected | ( | why", "nonsense"} {
		if _, err := parseRenames(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"pacer ls", "[a\nnonsense", "[a]\npacer 'ls", "[a b]", "[a]\nnew: pacer ls"} {
		if _, err := parseList(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
