package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestE2EStoreMaintenance: store verify, store compact and export give the same answers with a server that has the store
// open as without, the server writes the first two to its audit log, and damage is found.
func TestE2EStoreMaintenance(t *testing.T) {
	pacer, data, dir := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "data"), t.TempDir()
	try := func(args ...string) (out, diagnostics string, code int) {
		t.Helper()
		cmd := exec.Command(pacer, append([]string{"--data", data}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PACER_TOKEN=")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		b, _ := cmd.Output() // its exit code is returned
		return string(b), stderr.String(), cmd.ProcessState.ExitCode()
	}
	run := func(into any, args ...string) {
		t.Helper()
		out, diagnostics, code := try(append(args, "--output", "json")...)
		if code != 0 {
			t.Fatalf("pacer %q ended with %d:\n%s", args, code, diagnostics)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	exported := func(file string, args ...string) []spec.Measurement {
		t.Helper()
		var to struct{ Rows int }
		run(&to, append([]string{"export", file}, args...)...)
		var rows []spec.Measurement
		read := rowfile.ReadArrow
		if filepath.Ext(file) == ".parquet" {
			read = rowfile.ReadParquet
		}
		for m, err := range read(filepath.Join(dir, file)) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, m)
		}
		if len(rows) != to.Rows || to.Rows < 10 {
			t.Fatalf("%d rows in %s, %d reported", len(rows), file, to.Rows)
		}
		return rows
	}
	if _, diagnostics, code := try("store", "verify"); code == 0 || !strings.Contains(diagnostics, "no measurements in") {
		t.Errorf("without a store: %d %s", code, diagnostics)
	}
	if _, diagnostics, code := try("import", "measured", "cpu-small"); code != 0 {
		t.Fatal(diagnostics)
	}
	var closed, served trust.Verification
	run(&closed, "store", "verify")
	if !closed.OK || closed.Rows < 200 || closed.Bytes < 10000 || len(closed.Faults) > 0 {
		t.Errorf("closed: %+v", closed)
	}
	all := exported("closed.parquet")

	audit := filepath.Join(dir, "audit.log")
	s := startServing(t, pacer, data, "--audit-log", audit)
	run(&served, "store", "verify")
	if !served.OK || served.Rows != closed.Rows {
		t.Errorf("served: %+v, closed %+v", served, closed)
	}
	var small trust.Compaction
	run(&small, "store", "compact")
	if small.Rows != closed.Rows || small.BytesBefore <= 0 || small.BytesAfter <= 0 || small.BytesAfter > 2*small.BytesBefore {
		t.Errorf("served: %+v", small)
	}
	if d := cmp.Diff(all, exported("served.arrow")); d != "" {
		t.Errorf("exported without (-) and with a server (+):\n%s", d)
	}
	if n := len(exported("some.arrow", "--model", all[0].Config.Model.Name)); n >= len(all) {
		t.Errorf("%d rows of one model", n)
	}
	if _, diagnostics, code := try("export", "none.arrow", "--model", "nosuch"); code != 2 || !strings.Contains(diagnostics, `"nosuch"`) {
		t.Errorf("rows of an unknown model: %d %s", code, diagnostics)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.done
	log := string(spectest.ReadFile(t, audit))
	for _, path := range []string{"/v1/store/verify", "/v1/store/compact"} {
		if !strings.Contains(log, `"scope":"admin"`) || !strings.Contains(log, `"path":"`+path+`"`) {
			t.Errorf("the audit log has no %s:\n%s", path, log)
		}
	}

	run(&small, "store", "compact")
	if small.Rows != closed.Rows {
		t.Errorf("closed: %+v", small)
	}
	tables, err := filepath.Glob(filepath.Join(data, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("no tables", err)
	}
	b := spectest.ReadFile(t, tables[0])
	b[len(b)/2] ^= 1
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, diagnostics, code := try("store", "verify")
	if code != 1 || !strings.Contains(out, filepath.Base(tables[0])) || !strings.Contains(out, "1 fault") || !strings.Contains(diagnostics, "the store has 1 fault") {
		t.Errorf("damaged: %d\n%s%s", code, out, diagnostics)
	}
}
