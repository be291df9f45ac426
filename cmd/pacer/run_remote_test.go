package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestE2ERunRemote runs a campaign by the script for machines that have nothing
// else: from another directory, with a name that has a space in it.
func TestE2ERunRemote(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err) // make runs in it too
	}
	kit, work := t.TempDir(), t.TempDir()
	script := spectest.ReadFile(t, filepath.Join(moduleDir(t), "bench/campaigns/run-remote.sh"))
	writeFile(t, filepath.Join(kit, "run-remote.sh"), string(script))
	writeFile(t, filepath.Join(kit, "tiny.yaml"), `
name: tiny
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
accelerator: h100
space: {micro_batch: [1, 2, 4, 8]}
runner: synthetic
`)
	remote := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.Command(bash, append([]string{filepath.Join(kit, "run-remote.sh")}, args...)...)
		cmd.Dir = work
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%v: %v, want exit code %d\n%s", args, err, want, errs.String())
		}
		return out.String(), errs.String()
	}
	if _, errs := remote(2); !strings.Contains(errs, "usage: run-remote.sh") {
		t.Errorf("without arguments: %s", errs)
	}
	pacer := selfAs(t, "pacer")
	if _, errs := remote(2, "-p", pacer, "nosuch.yaml"); !strings.Contains(errs, "no campaign file nosuch.yaml") {
		t.Errorf("a missing file: %s", errs)
	}
	out, errs := remote(0, "-p", pacer, "-o", "to take home", "tiny.yaml", "--max-points", "3")
	if want := "to take home/tiny.parquet"; strings.TrimSpace(out) != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	rows := 0
	for m, err := range rowfile.ReadParquet(filepath.Join(work, "to take home/tiny.parquet")) {
		if err != nil {
			t.Fatal(err)
		}
		if rows++; m.Source != "campaign/tiny" {
			t.Errorf("source %q", m.Source)
		}
	}
	if rows != 3 {
		t.Errorf("%d rows, want 3\n%s", rows, errs)
	}
	for name, field := range map[string]string{"summary.json": "stopped", "devices.json": "inventory"} {
		text, err := os.ReadFile(filepath.Join(work, "to take home", name))
		var value map[string]any
		if err == nil {
			err = json.Unmarshal(text, &value)
		}
		if err != nil || value[field] == nil {
			t.Errorf("%s lacks %s: %v\n%s", name, field, err, text)
		}
	}
	log, err := os.ReadFile(filepath.Join(work, "to take home/log.txt"))
	if err != nil || !strings.Contains(string(log), "profile tiny: 3 of 3 points: ") {
		t.Errorf("%v: the log lacks the last point:\n%s", err, log)
	}
	remote(0, "-p", pacer, "-o", "to take home", "tiny.yaml", "--max-points", "4") // goes on
	rows = 0
	for _, err := range rowfile.ReadParquet(filepath.Join(work, "to take home/tiny.parquet")) {
		if rows++; err != nil {
			t.Fatal(err)
		}
	}
	if rows != 4 {
		t.Errorf("%d rows after going on, want 4", rows)
	}
	remote(2, "-p", pacer, "tiny.yaml", "--nosuch")
}
