package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pacer": main})
}

// TestScript runs the command as its users do. Beside testscript's own
// commands:
//
//	exits CODE[|CODE...] pacer ARG...   runs it and checks the exit code
func TestScript(t *testing.T) { runScripts(t, "testdata/script", nil) }

// TestScriptPublished runs the command on the published data sets, found at $SHARED.
func TestScriptPublished(t *testing.T) {
	shared := spectest.Shared(t)
	runScripts(t, "testdata/published", func(env *testscript.Env) error {
		env.Setenv("SHARED", shared)
		return nil
	})
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir: dir, ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/xdg")
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/cache")
			if bin := os.Getenv("PACER_BIN"); bin != "" { // the built command instead of this test binary
				env.Setenv("PATH", filepath.Dir(bin)+string(filepath.ListSeparator)+env.Getenv("PATH"))
			}
			if setup != nil {
				return setup(env)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE[|CODE...] COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}
