package main

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestE2EKilledImport kills the importer with SIGKILL at random moments: the
// store must open again and hold every row the importer had said was stored.
// 8 rounds, 100 with PACER_SOAK set.
func TestE2EKilledImport(t *testing.T) {
	rounds := 8
	if os.Getenv("PACER_SOAK") != "" {
		rounds = 100
	}
	pacer := selfAs(t, "pacer")
	rows := inventedRows(6000)
	file := filepath.Join(t.TempDir(), "rows.parquet")
	if _, err := rowfile.ExportFile(file, rowfile.Parquet, perfmodel.Rows(rows)); err != nil {
		t.Fatal(err)
	}
	whole := timeImport(t, pacer, file)
	r := rand.New(rand.NewPCG(1, 2))
	killed := 0
	data := t.TempDir()
	for i := range rounds {
		if i%5 == 0 { // sometimes on top of what earlier rounds left behind
			data = t.TempDir()
		}
		acked, done := killImport(t, pacer, data, file, time.Duration(r.Float64()*1.1*float64(whole)))
		if !done {
			killed++
		}
		if err := holdsFirst(filepath.Join(data, "store"), rows, acked); err != nil {
			t.Fatalf("round %d, killed after %d acknowledged rows: %v", i, acked, err)
		}
	}
	if killed < rounds/3 {
		t.Errorf("only %d of %d imports were killed under way", killed, rounds)
	}
}

// selfAs returns this test binary under the name of the command it stands for.
func selfAs(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a command and returns the lines of its standard error.
func start(t *testing.T, cmd *exec.Cmd) iter.Seq[string] {
	t.Helper()
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for sc := bufio.NewScanner(errs); sc.Scan() && yield(sc.Text()); {
		}
	}
}

func inventedRows(n int) []spec.Measurement {
	rows := make([]spec.Measurement, n)
	for i := range rows {
		rows[i] = spec.Measurement{
			Config: spec.Config{
				Model: spec.Model{Name: fmt.Sprintf("model-%d", i%7)}, Accelerator: spec.Accelerator{Name: "A"},
				Plan: spec.Plan{DP: 1 + i%64, MicroBatch: 1}.Normal(), Shape: spec.Packed(1+i%64, 8),
			},
			Outcome: spec.OK, StepSec: []float64{1 + float64(i)/7}, Source: "invented", Origin: strconv.Itoa(i),
		}
	}
	return rows
}

func timeImport(t *testing.T, pacer, file string) time.Duration {
	t.Helper()
	start := time.Now()
	out, err := exec.Command(pacer, "--data", t.TempDir(), "import", "parquet", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return time.Since(start)
}

var storedLine = regexp.MustCompile(`stored (\d+) rows`)

// killImport starts an import, kills it after the given time and returns how
// many rows it had acknowledged, and whether it was done before.
func killImport(t *testing.T, pacer, data, file string, after time.Duration) (acked int, done bool) {
	t.Helper()
	cmd := exec.Command(pacer, "--data", data, "import", "parquet", file)
	lines := start(t, cmd)
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // SIGKILL; it may have ended
	defer timer.Stop()
	for line := range lines {
		if m := storedLine.FindStringSubmatch(line); m != nil {
			acked, _ = strconv.Atoi(m[1])
		}
	}
	return acked, cmd.Wait() == nil
}

// holdsFirst checks that the store opens and holds the first n rows.
func holdsFirst(dir string, rows []spec.Measurement, n int) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) && n == 0 {
		return nil
	}
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	have := map[string]float64{}
	for m, err := range db.Query(context.Background(), store.Filter{}) {
		if err != nil {
			return err
		}
		have[m.Origin] = m.MedianStepSec()
	}
	if err := db.Close(); err != nil {
		return err
	}
	for _, m := range rows[:n] {
		if have[m.Origin] != m.MedianStepSec() {
			return fmt.Errorf("row %s: stored %g s, imported %g s", m.Origin, have[m.Origin], m.MedianStepSec())
		}
	}
	return nil
}
