package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DL2Speeds are the speeds of jobs with parameter servers.
type DL2Speeds struct {
	Rows []spec.Measurement
	// Listed means that the speeds are from a simulator's table of all its pairs, so that no speed is
	// interpolated between them.
	Listed bool
	Bad    []error // a *RowError for each invalid row
}

// ReadDL2Speeds reads ps_speed.csv as measured, or the directory of it, or the table that DL2's
// simulator derives from it by interpolation and extrapolation:
// model,num_ps,num_workers,speed_samples_s. Rows of speed 0 are failed measurements, or in the
// simulator's table pairs that cannot run.
func ReadDL2Speeds(ctx context.Context, path string) (DL2Speeds, error) {
	info, err := os.Stat(path)
	if err != nil {
		return DL2Speeds{}, fmt.Errorf("datasets: %w", err)
	}
	if info.IsDir() {
		return collectDL2(dl2Importer.Import(ctx, os.DirFS(path)))
	}
	listed, err := isDL2Grid(path)
	if err != nil {
		return DL2Speeds{}, fmt.Errorf("datasets: %w", err)
	}
	root, file := os.DirFS(filepath.Dir(path)), filepath.Base(path)
	if listed {
		return readDL2Grid(ctx, root, file)
	}
	return collectDL2(dl2Table(ctx, root, file))
}

// isDL2Grid reports whether a file begins like the simulator's table.
func isDL2Grid(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, first := range table.Lines(f) {
		cells, err := table.Split(first.Text)
		return err == nil && slices.Contains(cells, "speed_samples_s"), nil
	}
	return false, nil
}

func collectDL2(rows iter.Seq2[spec.Measurement, error]) (out DL2Speeds, err error) {
	out.Rows, out.Bad, err = splitErrors(rows)
	return out, err
}

// readDL2Grid reads the simulator's table.
func readDL2Grid(ctx context.Context, root fs.FS, file string) (DL2Speeds, error) {
	acc, err := catalog.Accelerator(dl2Accelerator)
	if err != nil {
		return DL2Speeds{}, err
	}
	rows := table.ReadFile(ctx, root, file, "model", "num_ps", "num_workers", "speed_samples_s")
	out, err := collectDL2(convertRows(rows, func(rec *table.Record) (spec.Measurement, error) {
		m, err := dl2Point(rec)
		m.Config.Accelerator = acc
		return m, err
	}))
	out.Listed = true
	return out, err
}

// dl2Point reads one row of that table.
func dl2Point(rec *table.Record) (spec.Measurement, error) {
	kind := slices.IndexFunc(dl2Types, func(t DL2Type) bool { return t.Model == rec.Str("model") })
	if kind < 0 {
		rec.Fail("model", errors.New("is not one of DL2's"))
	}
	workers, servers := rec.NeedCount("num_workers"), rec.NeedCount("num_ps")
	rec.Need("speed_samples_s")
	speed := rec.AtLeast0("speed_samples_s")
	if rec.Err() != nil {
		return spec.Measurement{}, rec.Err()
	}
	j := dl2Types[kind].Job("", time.Duration(0), 1)
	m := spec.Measurement{
		Config: spec.Config{Model: j.Model, Plan: j.ParamServerPlan(workers, servers), Framework: "MXNet"},
		Source: "dl2", Origin: rec.Origin("ps_speed.csv"),
		Env: map[string]string{spec.EnvGlobalBatch: fmt.Sprint(j.GlobalBatch)},
	}
	if speed == 0 {
		m.Outcome, m.Reason = spec.Failed, "speed 0: nothing runs"
		return m, nil
	}
	m.Outcome, m.StepSec = spec.OK, []float64{float64(j.GlobalBatch) / speed}
	return m, nil
}
