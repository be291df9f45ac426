package datasets

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"math"
	"path"
	"strconv"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var dl2Importer = Importer{
	Name:    "dl2",
	Doc:     "speeds of 8 models by parameter servers and workers, GTX 1080 Ti (Peng et al., DL2, TPDS 2021)",
	License: "none stated",
	URL:     "https://github.com/pengyanghua/DL2",
	Commit:  "2e54920d2100bff2e14e246c423419bbd326c55b",
	Dir:     "the folder of ps_speed.csv, or the one above it",
	Open:    dl2Tables.open,
}

var dl2Tables = tables{name: "dl2", files: dl2Files, read: dl2Table}

// dl2Files finds the table of speeds. A table of the models' gradient sizes,
// model_measurements.csv, may be beside it.
func dl2Files(root fs.FS) ([]string, error) {
	return table.Glob(root, "ps_speed.csv", "*/ps_speed.csv")
}

// dl2Accelerator is the accelerator of the testbed's servers, which ran MXNet workers with one GPU
// each.
const dl2Accelerator = "GTX1080Ti"

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
		rows := table.ReadFile(ctx, root, file, "model", "batch_size", "num_ps", "num_workers", "speed_sum_samples_s")
		convertRows(rows, func(rec *table.Record) (spec.Measurement, error) {
			m, err := dl2Measurement(rec, params)
			m.Config.Accelerator = acc
			return m, err
		})(yield)
	}
}

// dl2Params reads the number of fp32 parameters of each model from the size of its gradients in
// 10^6 bytes. It skips invalid rows; without the file all are unknown.
func dl2Params(ctx context.Context, root fs.FS, file string) (map[string]float64, error) {
	out := map[string]float64{}
	if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	for rec, err := range table.ReadFile(ctx, root, file, "model", "model_size_mb") {
		var row *RowError
		switch {
		case errors.As(err, &row):
			continue
		case err != nil:
			return nil, err
		}
		if mb := rec.AtLeast0("model_size_mb"); rec.Err() == nil {
			out[rec.Str("model")] = mb * 1e6 / 4
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
func dl2Measurement(rec *table.Record, params map[string]float64) (spec.Measurement, error) {
	name, batch := rec.Need("model"), rec.NeedCount("batch_size")
	servers, workers := rec.NeedCount("num_ps"), rec.NeedCount("num_workers")
	rec.Need("speed_sum_samples_s")
	speed := rec.AtLeast0("speed_sum_samples_s")
	if s := rec.Str("sync"); s != "" && s != "dist_sync" {
		rec.Fail("sync", errors.New("is not dist_sync: only synchronous jobs are read"))
	}
	if speed > 0 && float64(batch)/speed > maxStepSec {
		rec.Fail("speed_sum_samples_s", errors.New("is too small"))
	}
	if rec.Err() != nil {
		return spec.Measurement{}, rec.Err()
	}
	m := spec.Measurement{
		Config: spec.Config{
			Model: spec.Model{Name: name, Kind: spec.Opaque, ParamCount: math.Round(params[name])},
			Plan: spec.Plan{DP: workers, ParamServers: servers,
				MicroBatch: (batch + workers - 1) / workers}.Normal(),
			Framework: "MXNet",
		},
		Source: "dl2", Origin: rec.Origin("ps_speed.csv"),
		Env: map[string]string{spec.EnvGlobalBatch: strconv.Itoa(batch)},
	}
	if speed == 0 {
		m.Outcome, m.Reason = spec.Failed, "speed 0: the measurement failed"
		return m, nil
	}
	m.Outcome, m.StepSec = spec.OK, []float64{float64(batch) / speed}
	if rec.Str("speed_min_worker_samples_s") != "" && rec.Float("speed_min_worker_samples_s") == 0 {
		m.Doubt = "synchronous training, but a worker was idle during the measurement"
	}
	return m, rec.Err()
}
