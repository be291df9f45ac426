package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// steps has a command for each kind of output.
const steps = `
[kinds]
pacer table
pacer csv -o csv
pacer json -o json
pacer write
show out.txt
show rows.csv
`

// binary is a script in place of a build of pacer.
const binary = `#!/bin/sh
case $1 in
table) echo "fifo  1.5 s of 3 jobs"; echo "note: read" >&2 ;;
csv) echo "policy,jct_s"; echo "fifo,1.5"; echo "las,2" ;;
json) echo '{"policy": "fifo", "jobs": [1, 2], "reason": "as it is"}' ;;
write) echo "steps 7" >out.txt; echo "job,end_s" >rows.csv; echo "a,9" >>rows.csv; exit 3 ;;
esac
`

// writeBinary writes a script in place of a build of pacer.
func writeBinary(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	spectest.WriteFile(t, file, []byte(text), 0o755)
	return file
}

// setList replaces the commands and renames of the tool.
func setList(t *testing.T, commands, renames string) {
	oldCommands, oldRenames := commandList, renameTable
	t.Cleanup(func() { commandList, renameTable = oldCommands, oldRenames })
	commandList, renameTable = commands, renames
}

// TestRun changes one output of a binary at a time: it is reported, with exit code 1.
func TestRun(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"fifo  1.5 s", "fifo 1.5  s", ""},
		{"fifo  1.5 s", "fifo  1.6 s", "pacer table: table: 1.5 3 -> 1.6 3"},
		{"of 3 jobs", "of 3 jobs, 2 ended", "pacer table: table: 1.5 3 -> 1.5 3 2"},
		{"note: read", "remark: read it", ""},
		{"note: read", "note: \nread", "pacer table: stderr lines: 1 -> 2"},
		{"las,2", "las,3", "pacer csv -o csv: 2.jct_s: \"2\" -> \"3\""},
		{"las,2", "srtf,2", "pacer csv -o csv: 2.policy: \"las\" -> \"srtf\""},
		{`echo "las,2"`, ":", "pacer csv -o csv: 2.policy: \"las\" -> nothing"},
		{`echo "las,2"`, `echo "las,2"; echo "edf,4"`, "pacer csv -o csv: 3.policy: nothing -> \"edf\""},
		{"[1, 2]", "[1, 3]", "pacer json -o json: jobs[1]: 2 -> 3"},
		{"[1, 2]", "[1, 2], \"late\": 0", "pacer json -o json: late: nothing -> 0"},
		{"as it is", "in other words", ""},
		{"as it is", "", "pacer json -o json: reason: text -> \"\""},
		{"exit 3", "exit 4", "pacer write: exit: 3 -> 4"},
		{"steps 7", "steps 8", "show out.txt: out.txt: steps 7 -> steps 8"},
		{"a,9", "a,10", "show rows.csv: rows.csv 1.end_s: \"9\" -> \"10\""},
		{"write) echo", "write) exit 3; echo", "show out.txt: out.txt: steps 7 -> no such file"},
	} {
		setList(t, steps, "")
		if !strings.Contains(binary, c.from) {
			t.Fatalf("%q is not part of the script", c.from)
		}
		old, new := writeBinary(t, "old", binary), writeBinary(t, "new", strings.Replace(binary, c.from, c.to, 1))
		var out, errs strings.Builder
		code := run(t.Context(), []string{"-old", old, "-new", new, "-cache", ""}, &out, &errs)
		var found []string
		command := ""
		for l := range strings.Lines(out.String()) {
			if text, ok := strings.CutPrefix(l, "kinds: "); ok {
				command = strings.TrimSpace(text)
			} else if text, ok := strings.CutPrefix(l, "    "); ok {
				found = append(found, command+": "+strings.TrimSpace(text))
			}
		}
		if wantCode := min(len(c.want), 1); code != wantCode {
			t.Errorf("%q became %q: exit code %d, want %d\n%s", c.from, c.to, code, wantCode, &errs)
		}
		switch {
		case c.want == "" && len(found) > 0, c.want != "" && (len(found) == 0 || found[0] != c.want):
			t.Errorf("%q became %q: found %q, want %q first", c.from, c.to, found, c.want)
		}
	}
}

// TestRunExpected: a difference that the table of renames expects is counted apart.
func TestRunExpected(t *testing.T) {
	setList(t, steps, "expected | pacer write: exit: 3 -> 4 | a code of its own")
	old, new := writeBinary(t, "old", binary), writeBinary(t, "new", strings.Replace(binary, "exit 3", "exit 4", 1))
	var out, errs strings.Builder
	code := run(t.Context(), []string{"-old", old, "-new", new, "-cache", ""}, &out, &errs)
	if want := "0 of 6 outputs differ, 1 expected differences,"; code != 0 || !strings.HasPrefix(out.String(), want) {
		t.Errorf("exit code %d, printed %s, want 0, %s\n%s", code, &out, want, &errs)
	}
}

// TestCache: the old binary runs again if its commands or the binary itself changed, and not otherwise.
func TestCache(t *testing.T) {
	cache, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	script := fmt.Sprintf("#!/bin/sh\necho $1 >>%s\n", log)
	old, changed, new := writeBinary(t, "old", script), writeBinary(t, "changed", script+"# rebuilt\n"), writeBinary(t, "new", "#!/bin/sh\n")
	for _, c := range []struct {
		binary, commands string
		runs             int // of the old binary, until now
	}{
		{old, "[a]\npacer one", 1},
		{old, "[a]\npacer one", 1},
		{old, "[a]\npacer two", 2},
		{old, "[a]\npacer one", 2},
		{changed, "[a]\npacer one", 3},
	} {
		setList(t, c.commands, "")
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"-old", c.binary, "-new", new, "-cache", cache}, &out, &errs); code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
		}
		text, err := os.ReadFile(log)
		if got := strings.Count(string(text), "\n"); err != nil || got != c.runs {
			t.Errorf("%s of %s: the old binary ran %d times, want %d (%v)", c.commands, filepath.Base(c.binary), got, c.runs, err)
		}
	}
}

func TestCachedBinary(t *testing.T) {
	file := cachedBinary("dir", "c91d60e", buildArgs)
	if filepath.Dir(file) != "dir" || !strings.Contains(file, "c91d60e") || len(filepath.Base(file)) != len("pacer-c91d60e-01234567") {
		t.Errorf("file %s", file)
	}
	if file == cachedBinary("dir", "b80dbfe", buildArgs) || file == cachedBinary("dir", "c91d60e", buildArgs[:2]) {
		t.Error("another commit or another build is kept in the same file")
	}
}
