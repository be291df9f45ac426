package policy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example is the policy that docs/add-a-policy.md walks through: the first block of
// Go there, and the file it says it is.
func example(t *testing.T) (file, text string) {
	t.Helper()
	const doc = "../../docs/add-a-policy.md"
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)`scheduler/policy/([a-z-]+\\.go)`:\n\n```go\n(.*?)```").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("%s has no policy in a block of Go behind the name of its file", doc)
	}
	return m[1], m[2]
}

// What docs/add-a-policy.md promises: one file more in this package, and nothing
// else, is a policy that is listed, runs and passes the conformance suite.
func TestTheDocumentedPolicyWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds pacer")
	}
	file, text := example(t)
	if n := strings.Count(text, "\n"); n > 25 {
		t.Errorf("the example has %d lines, the document says it is of twenty", n)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatalf("%s exists: the example is to be one that does not", file)
	}
	dir := t.TempDir()
	overlay := overlayOf(t, dir, file, text)
	name := strings.TrimSuffix(file, ".go")
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	pacer := filepath.Join(dir, "pacer")
	run("go", "build", "-overlay", overlay, "-o", pacer, "../../cmd/pacer")
	if out := run(pacer, "ls", "policies", "--output", "json"); !strings.Contains(out, `"name": "`+name+`"`) {
		t.Errorf("pacer ls policies does not list %s:\n%s", name, out)
	}
	jobs, ended := filepath.Join(dir, "jobs.csv"), filepath.Join(dir, "ended.csv")
	if err := os.WriteFile(jobs, []byte("job_id,submit_s,gpus,duration_s\n1,0,4,100\n2,5,8,100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(pacer, "simulate", "--workload", jobs, "--cluster", "1x8", "--policy", "fifo,"+name, "--jobs-out", ended)
	if out, err := os.ReadFile(ended); err != nil || !strings.Contains(string(out), name+",2,5,5,105,") {
		t.Errorf("%s lets the wider job wait (error %v):\n%s", name, err, out)
	}
	out := run("go", "test", "-overlay", overlay, "-v", "-run", "^TestConformance$/^"+name+"$", ".")
	if !strings.Contains(out, "--- PASS: TestConformance/"+name) {
		t.Errorf("the conformance suite does not know %s:\n%s", name, out)
	}
}

// overlayOf makes a file of this package out of text, for the go command only.
func overlayOf(t *testing.T, dir, file, text string) string {
	t.Helper()
	source := filepath.Join(dir, file)
	here, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{here: source}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	for path, b := range map[string][]byte{source: []byte(text), overlay: replace} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// The objective in docs/add-a-policy.md is that of its file, so that all that is
// tested of policies here is tested of it.
func TestDocumentedObjective(t *testing.T) {
	doc, err := os.ReadFile("../../docs/add-a-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("gavel_throughput.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(file)+"```\n") {
		t.Error("docs/add-a-policy.md does not show gavel_throughput.go as it is")
	}
}
