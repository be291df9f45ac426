package main

import (
	"os"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const (
	noticedFile = "package tiny\n\nfunc add(a, b int) int { return a + b }\n"
	// The test does not compare equal numbers. Strings cannot be subtracted.
	survivingFile = "package tiny\n\nfunc larger(a, b int) bool { return a > b }\n\nvar text = tiny + tiny\n\nconst tiny = \"tiny\"\n"
	testFile      = `package tiny

import "testing"

func TestTiny(t *testing.T) {
	if add(2, 3) != 5 || !larger(3, 2) || larger(2, 3) || text != "tinytiny" {
		t.Error("wrong")
	}
}
`
)

// TestRun changes a small module: one change is noticed, one survives, one does not build.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(file, text string) {
		t.Helper()
		spectest.WriteFile(t, file, []byte(text), 0o644)
	}
	write("go.mod", "module tiny\n")
	write("add.go", noticedFile)
	write("larger.go", survivingFile)
	write("tiny_test.go", testFile)
	check := func(code int, stdout, stderr string, args ...string) {
		t.Helper()
		var out, errs strings.Builder
		got := run(t.Context(), args, &out, &errs)
		if got != code || out.String() != stdout || !strings.Contains(errs.String(), stderr) {
			t.Errorf("mutate %q: exit code %d, want %d; printed\n%s\nwant\n%s\nand\n%s\nwant\n%s", args, got, code, &out, stdout, &errs, stderr)
		}
	}
	check(1, "larger.go:3: > became >=\n.: 3 of 3 changes tried: 1 noticed, 1 survive, 1 do not build\n", "", ".")
	check(0, ".: 1 of 1 changes tried: 1 noticed, 0 survive, 0 do not build\n", "", "-file", "add.go", ".")
	check(1, "", `no code to change in "none.go"`, "-file", "none.go", ".")
	check(2, "", "want one package")
	for file, text := range map[string]string{"add.go": noticedFile, "larger.go": survivingFile} {
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%s was changed: %v", file, err)
		}
	}
	write("add.go", strings.Replace(noticedFile, "+", "-", 1))
	check(1, "", "tests of . fail without any change", ".")
}
