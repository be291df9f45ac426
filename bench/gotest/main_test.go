package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestRun runs the tests of a small module: its exit code, failures and skips are those of go test.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"go.mod":    "module tiny\n",
		"a_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestPass(t *testing.T) { t.Log(\"a log\") }\n",
		"b_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestFail(t *testing.T) { t.Fatal(\"wrong\") }\n",
		"c_test.go": "package tiny\n\nimport \"testing\"\n\n" +
			"func TestParts(t *testing.T) { t.Run(\"gpu\", func(t *testing.T) { t.Skip(\"no GPU\") }) }\n",
	} {
		spectest.WriteFile(t, file, []byte(text), 0o644)
	}
	seconds := regexp.MustCompile(`\(?[0-9.]+s\)?`)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-run Pass|Parts", 0, "ok tiny T\nskipped: 1 test: no GPU\n"},
		{"-skips -run Pass|Parts", 0, "ok tiny T\nskipped: tiny TestParts/gpu: no GPU\n"},
		{"-v -run Pass", 0, "a_test.go:5: a log\n--- PASS: TestPass T\nPASS\nok tiny T\n"},
		{"", 1, "b_test.go:5: wrong\n--- FAIL: TestFail T\nFAIL\nFAIL tiny T\nskipped: 1 test: no GPU\n"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append(strings.Fields(c.args), "-count=1", "."), &out, &errs)
		var got strings.Builder
		for l := range strings.Lines(seconds.ReplaceAllString(out.String(), "T")) {
			got.WriteString(strings.Join(strings.Fields(l), " ") + "\n")
		}
		if code != c.code || got.String() != c.want {
			t.Errorf("gotest %s: code %d, want %d; printed\n%s\nwant\n%s\n%s", c.args, code, c.code, got.String(), c.want, errs.String())
		}
	}
}
