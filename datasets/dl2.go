package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path"
	"strconv"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func init() {
	register(Importer{
		Name:    "dl2",
		Doc:     "speeds of 8 models by parameter servers and workers, GTX 1080 Ti (Peng et al., DL2, TPDS 2021)",
		License: "none stated",
		URL:     "https://github.com/pengyanghua/DL2",
		Commit:  "2e54920d2100bff2e14e246c423419bbd326c55b",
		Import:  importDL2,
		Count: func(root fs.FS) (int, error) {
			files, err := dl2Files(root)
			return countRows(root, "dl2", files, err)
		},
	})
}

// dl2Files finds the table of speeds. A table of the models' gradient sizes,
// model_measurements.csv, may be beside it.
func dl2Files(root fs.FS) ([]string, error) {
	return glob(root, "ps_speed.csv", "*/ps_speed.csv")
}

// dl2Accelerator is the accelerator of the testbed's servers, which ran MXNet workers with one GPU
// each.
const dl2Accelerator = "GTX1080Ti"

func importDL2(ctx context.Context, root fs.FS) iter.Seq2[spec.Measurement, error] {
	return importTables(ctx, root, "dl2", dl2Files, dl2Table)
}

// dl2Table yields one table's rows.
func dl2Table(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		acc, err := catalog.Accelerator(dl2Accelerator)
		if err != nil {
			yield(spec.Measurement{}, err)
			return
		}
		params, err := dl2Params(ctx, root, path.Join(path.Dir(file), "model_measurements.csv"))
		if err != nil {
			yield(spec.Measurement{}, err)
			return
		}
		for rec, err := range readFile(ctx, root, file, "model", "batch_size", "num_ps", "num_workers", "speed_sum_samples_s") {
			var m spec.Measurement
			if err == nil {
				m, err = dl2Measurement(rec, params)
				m.Config.Accelerator = acc
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// dl2Params reads the number of fp32 parameters of each model from the size of its gradients in
// 10^6 bytes. It skips invalid rows; without the file all are unknown.
func dl2Params(ctx context.Context, root fs.FS, file string) (map[string]float64, error) {
	out := map[string]float64{}
	if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	for rec, err := range readFile(ctx, root, file, "model", "model_size_mb") {
		var row *RowError
		switch {
		case errors.As(err, &row):
			continue
		case err != nil:
			return nil, err
		}
		if mb := rec.atLeast0("model_size_mb"); rec.err() == nil {
			out[rec.str("model")] = mb * 1e6 / 4
		}
	}
	return out, nil
}

// dl2Measurement reads one row: a synchronous job of num_workers workers with one device each, and
// num_ps parameter servers. The placement of the workers is not recorded.
//
// The measured value is samples/s at a fixed global batch that the workers share; a step is that
// batch. If the workers do not divide it, Plan.MicroBatch is the largest share, for which a
// synchronous step waits, and Plan.GlobalBatch exceeds the batch, which is in Env. Step times of
// the whole batch, not of equal rounded shares, are smooth in the number of workers: rounding
// either way doubles the steps from one count to the next for the small batches of resnet-50 and
// vgg-16.
func dl2Measurement(rec *record, params map[string]float64) (spec.Measurement, error) {
	name, batch := rec.need("model"), rec.count("batch_size")
	servers, workers := rec.count("num_ps"), rec.count("num_workers")
	for _, col := range []string{"batch_size", "num_ps", "num_workers"} {
		if rec.count(col) == 0 {
			rec.fail(col, errors.New("is missing or 0"))
		}
	}
	speed := rec.atLeast0("speed_sum_samples_s")
	if rec.str("speed_sum_samples_s") == "" {
		rec.fail("speed_sum_samples_s", errors.New("is missing"))
	}
	if s := rec.str("sync"); s != "" && s != "dist_sync" {
		rec.fail("sync", errors.New("is not dist_sync: only synchronous jobs are read"))
	}
	if speed > 0 && float64(batch)/speed > maxStepSec {
		rec.fail("speed_sum_samples_s", errors.New("is too small"))
	}
	if rec.err() != nil {
		return spec.Measurement{}, rec.err()
	}
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: name, Kind: spec.Opaque, ParamCount: math.Round(params[name])},
			Plan: spec.Plan{DP: workers, ParamServers: servers,
				MicroBatch: (batch + workers - 1) / workers}.Normal(),
			Framework: "MXNet",
		},
		Source: "dl2", Origin: fmt.Sprintf("%s:%d", rec.file, rec.line),
		Env: map[string]string{spec.EnvGlobalBatch: strconv.Itoa(batch)},
	}
	if speed == 0 {
		m.Outcome, m.Reason = spec.Failed, "speed 0: the measurement failed"
		return m, nil
	}
	m.Outcome, m.StepSec = spec.OK, []float64{float64(batch) / speed}
	if rec.str("speed_min_worker_samples_s") != "" && rec.float("speed_min_worker_samples_s") == 0 {
		m.Doubt = "synchronous training, but a worker was idle during the measurement"
	}
	return m, rec.err()
}
