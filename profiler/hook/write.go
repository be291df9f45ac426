package hook

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed pacer_hook/*.py
var program embed.FS

const programDir = "pacer_hook"

// NodeVar, if set, names the node of a process. Processes of several nodes may write to one directory.
const NodeVar = "PACER_HOOK_NODE"

// outVar names the directory that the processes of a program write to.
const outVar = "PACER_HOOK_OUT"

// Write writes the Python modules below dir, and the directory out for results. It returns the variables that a program
// needs to be timed, given the value of PYTHONPATH that it would have.
func Write(dir, out, pythonPath string) (env []string, err error) {
	modules := filepath.Join(dir, programDir)
	for _, d := range []string{modules, out} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("hook: %w", err)
		}
	}
	entries, err := fs.ReadDir(program, programDir)
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	for _, e := range entries {
		text, err := program.ReadFile(path.Join(programDir, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(modules, e.Name()), text, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("hook: %w", err)
		}
	}
	list := modules
	if pythonPath != "" {
		list = strings.Join([]string{modules, pythonPath}, string(os.PathListSeparator))
	}
	return []string{"PYTHONPATH=" + list, outVar + "=" + out}, nil
}

// Out returns the usual directory of results below dir, for Write and Read.
func Out(dir string) string { return filepath.Join(dir, "hook-out") }
