package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Microbenchmark is a part of a training step, timed alone. The sizes that its Op has no use for are 0.
type Microbenchmark struct {
	Op         string    `json:"op"` // see MicrobenchmarkOps
	Precision  Precision `json:"precision,omitempty"`
	Rows       int       `json:"rows,omitempty"` // gemm: tokens; Cols and Depth are the widths of the layer's output and input
	Cols       int       `json:"cols,omitempty"`
	Depth      int       `json:"depth,omitempty"`
	Model      Model     `json:"model,omitzero"` // the network that a layer, or its attention or head, is of
	MicroBatch int       `json:"micro_batch,omitempty"`
	Parameters float64   `json:"parameters,omitempty"` // optimizer, accumulate
	Bytes      float64   `json:"bytes,omitempty"`      // copy: read and written; collectives: at each rank
	Ranks      int       `json:"ranks,omitempty"`      // of a collective
	Sec        []float64 `json:"sec"`                  // of each repetition
}

// MicrobenchmarkOps lists the values of Microbenchmark.Op.
func MicrobenchmarkOps() []string {
	return []string{"gemm forward", "gemm dgrad", "gemm wgrad", "attention", "layer", "head", "optimizer", "accumulate", "copy", "step",
		"all-reduce", "all-gather", "send"}
}

// Microbenchmarks are what one run measured on the devices of a machine.
type Microbenchmarks struct {
	Accelerator Accelerator       `json:"accelerator"`
	Link        Link              `json:"link"`
	Framework   string            `json:"framework"`
	At          time.Time         `json:"at"`
	Env         map[string]string `json:"env,omitempty"`
	Rows        []Microbenchmark  `json:"rows"`
}

// Validate returns why b cannot be used.
func (b *Microbenchmarks) Validate() error {
	if err := b.Accelerator.Validate(); err != nil {
		return err
	}
	if len(b.Rows) == 0 {
		return fmt.Errorf("spec: micro-benchmarks of %s have no rows", b.Accelerator.Name)
	}
	for i, r := range b.Rows {
		if !slices.Contains(MicrobenchmarkOps(), r.Op) {
			return fmt.Errorf("spec: micro-benchmarks: rows[%d].op %q is not one of %q", i, r.Op, MicrobenchmarkOps())
		}
		if len(r.Sec) == 0 || slices.ContainsFunc(r.Sec, func(s float64) bool { return !(s > 0) || math.IsInf(s, 0) }) {
			return fmt.Errorf("spec: micro-benchmarks: rows[%d].sec %v of %s, want one or more positive and finite numbers", i, r.Sec, r.Op)
		}
		for name, v := range map[string]float64{"rows": float64(r.Rows), "cols": float64(r.Cols), "depth": float64(r.Depth), "micro_batch": float64(r.MicroBatch),
			"parameters": r.Parameters, "bytes": r.Bytes, "ranks": float64(r.Ranks)} {
			if !(v >= 0) || v > 1e15 {
				return fmt.Errorf("spec: micro-benchmarks: rows[%d].%s %g of %s is not in [0, 1e15]", i, name, v, r.Op)
			}
		}
	}
	return nil
}

// Digest returns the text of Accelerator.Measured: b with the quartiles of each row in place of its repetitions.
func (b Microbenchmarks) Digest() (string, error) {
	b.Rows, b.Env = slices.Clone(b.Rows), nil
	for i := range b.Rows {
		lo, median, hi := quartiles(b.Rows[i].Sec)
		b.Rows[i].Sec = []float64{lo, median, hi}
	}
	text, err := json.Marshal(b)
	return string(text), err
}

// Median returns the median repetition, in seconds, and the standard deviation of the logarithm of a repetition by the
// distance of the quartiles.
func (r *Microbenchmark) Median() (sec, spread float64) {
	lo, sec, hi := quartiles(r.Sec)
	const apart = 1.349 // distance of the quartiles of a normal distribution, in standard deviations
	return sec, math.Log(hi/lo) / apart
}

func quartiles(v []float64) (lo, median, hi float64) {
	v = slices.Sorted(slices.Values(v))
	return stats.NearestRank(v, 0.25), stats.NearestRank(v, 0.5), stats.NearestRank(v, 0.75)
}
