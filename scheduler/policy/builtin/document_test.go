package builtin_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// example returns the policy in docs/guides/add-a-policy.md: the first block of Go there, the
// name of its file, and its line in the table of built-in policies.
func example(t *testing.T) (file, text, line string) {
	t.Helper()
	const doc = "../../../docs/guides/add-a-policy.md"
	b := spectest.ReadFile(t, doc)
	m := regexp.MustCompile("(?s)`scheduler/policy/order/([a-z-]+\\.go)`:\n\n```go\n(.*?)```.*?`(order\\.[A-Za-z]+,)`").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("%s has no policy in a block of Go with the name of its file before it and its line of the table after it", doc)
	}
	return m[1], m[2], m[3]
}

// The example of docs/guides/add-a-policy.md, one file in package order and one line in the
// table, is listed, runs and passes the conformance suite.
func TestTheDocumentedPolicyWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds pacer")
	}
	file, text, line := example(t)
	if n := strings.Count(text, "\n"); n > 25 {
		t.Errorf("the example has %d lines, the document says it is of twenty", n)
	}
	if _, err := os.Stat("../order/" + file); err == nil {
		t.Fatalf("%s exists: choose another example", file)
	}
	dir := t.TempDir()
	overlay := overlayOf(t, dir, file, text, line)
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
	run("go", "build", "-overlay", overlay, "-tags", "nokubernetes", "-ldflags", "-s -w", "-o", pacer, "../../../cmd/pacer")
	if out := run(pacer, "ls", "policies", "--output", "json"); !strings.Contains(out, `"name": "`+name+`"`) {
		t.Errorf("pacer ls policies does not list %s:\n%s", name, out)
	}
	jobs, ended := filepath.Join(dir, "jobs.csv"), filepath.Join(dir, "ended.csv")
	spectest.WriteFile(t, jobs, []byte("job_id,submit_s,gpus,duration_s\n1,0,4,100\n2,5,8,100\n"), 0o600)
	run(pacer, "simulate", "--workload", jobs, "--cluster", "1x8", "--policy", "fifo,"+name, "--jobs-out", ended)
	if out, err := os.ReadFile(ended); err != nil || !strings.Contains(string(out), name+",2,5,5,105,") {
		t.Errorf("%s lets the wider job wait (error %v):\n%s", name, err, out)
	}
	out := run("go", "test", "-overlay", overlay, "-vet", "off", "-v", "-run", "^TestConformance$/^"+name+"$", ".")
	if !strings.Contains(out, "--- PASS: TestConformance/"+name) {
		t.Errorf("the conformance suite does not know %s:\n%s", name, out)
	}
}

// overlayOf returns an overlay for the go command in which package order has one file
// more, and the table of built-in policies one line more.
func overlayOf(t *testing.T, dir, file, text, line string) string {
	t.Helper()
	const start = "policy.NewRegistry(\n"
	table := spectest.ReadFile(t, "builtin.go")
	replace := map[string]string{}
	for path, content := range map[string]string{"../order/" + file: text, "builtin.go": strings.Replace(string(table), start, start+"\t"+line+"\n", 1)} {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replace[abs] = filepath.Join(dir, filepath.Base(path))
		spectest.WriteFile(t, replace[abs], []byte(content), 0o600)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	spectest.WriteFile(t, overlay, b, 0o600)
	return overlay
}

// docs/guides/add-a-policy.md shows source files exactly as they are in the repository.
func TestDocumentedFiles(t *testing.T) {
	doc := spectest.ReadFile(t, "../../../docs/guides/add-a-policy.md")
	for _, name := range []string{"order/priority.go", "gavel/throughput.go"} {
		file := spectest.ReadFile(t, "../"+name)
		if !strings.Contains(string(doc), "```go\n"+string(file)+"```\n") {
			t.Errorf("docs/guides/add-a-policy.md does not show %s as it is", name)
		}
	}
}
