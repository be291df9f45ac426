package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestE2EImportWhileServed: import and calibrate store rows with the server that has the store open, or with that of
// --server, and none twice, whatever folder a file is in.
func TestE2EImportWhileServed(t *testing.T) {
	pacer, data, dir := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "data"), t.TempDir()
	s := startServing(t, pacer, data)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(pacer, args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PACER_TOKEN=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("pacer %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	stored := func() (rows int) {
		var out server.Measurements
		get(t, s.url+"/v1/measurements", &out)
		for _, m := range out.Measurements {
			rows += m.Rows
		}
		return rows
	}
	first := run("--data", data, "import", "measured", "cpu-small")
	all := stored()
	if !strings.Contains(first, "import measured: rows are posted to pacer serve at "+s.url) || all < 200 {
		t.Fatalf("%d rows stored:\n%s", all, first)
	}
	for _, args := range [][]string{
		{"--data", data, "import", "measured", "cpu-small"},
		{"--data", filepath.Join(dir, "another"), "import", "measured", "cpu-small", "--server", s.url},
	} {
		if out := run(args...); stored() != all || !regexp.MustCompile(`\nmeasured\s+\d+\s+0\s+0\s+`).MatchString(out) {
			t.Errorf("%d rows after %q, want %d:\n%s", stored(), args, all, out)
		}
	}

	calibration := []string{"--data", data, "calibrate", "-m", "llama3-8b", "-a", "h100", "-n", "16", "--rows", "my.csv"}
	run(append(calibration, "--emit", "megatron")...)
	file := filepath.Join(dir, "my.csv")
	b := spectest.ReadFile(t, file)
	spectest.WriteFile(t, file, regexp.MustCompile(`(?m),,,$`).ReplaceAll(b, []byte(",9.5,,")), 0o600)
	for range 2 {
		out := run(calibration...)
		if n := stored() - all; n < 2 || n > 10 || !strings.Contains(out, "Stored: ") || !strings.Contains(out, "rows are posted to pacer serve at "+s.url) {
			t.Errorf("%d rows of the calibration are stored:\n%s", n, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "another", "store")); err == nil {
		t.Error("with --server a store was made here")
	}
}
