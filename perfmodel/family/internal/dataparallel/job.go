package dataparallel

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Job identifies the rows of one fit of Pollux, Sia or Optimus. Their formulas use replicas, parameter servers,
// nodes, micro-batch and accumulation. Rows that differ in another property that affects the speed of a replica
// have different Jobs.
type Job struct {
	spec.Key
	Seq       int            `json:"seq_len,omitempty"`
	Precision spec.Precision `json:"precision,omitempty"` // "" = not recorded, matches any
	Recompute spec.Recompute `json:"recompute"`
	Servers   bool           `json:"servers,omitempty"` // has parameter servers
	Update    int            `json:"update,omitempty"`  // samples of one asynchronous update; 0 = synchronous
}

// JobOf returns the Job of c.
func JobOf(c *spec.Config) Job {
	p := c.Plan.Normal()
	j := Job{Key: c.Key(), Seq: c.Seq(), Precision: p.Precision, Recompute: p.Recompute, Servers: p.ParamServers > 0}
	if p.Async {
		j.Update = p.MicroBatch * p.AccumSteps
	}
	return j
}

// String names the fields that identify j.
func (j Job) String() string {
	s := fmt.Sprintf("%s, recompute %s", j.Key, j.Recompute)
	if j.Seq > 0 {
		s += fmt.Sprintf(", %d tokens a sample", j.Seq)
	}
	if j.Precision != "" {
		s += ", " + string(j.Precision)
	}
	switch {
	case j.Update > 0:
		s += fmt.Sprintf(", asynchronous updates of %d samples", j.Update)
	case j.Servers:
		s += ", parameter servers"
	}
	return s
}

// Covers returns an error wrapping perfmodel.ErrNotCovered if c does not belong to j. family is the prefix of
// the error.
func (j Job) Covers(family string, c *spec.Config) error {
	got := JobOf(c)
	if j.Precision == "" || got.Precision == "" {
		got.Precision = j.Precision
	}
	if got != j {
		return fmt.Errorf("%s: fitted to %s, not %s: %w", family, j, got, perfmodel.ErrNotCovered)
	}
	return nil
}

// Plan returns the normal plan of c, or an error wrapping perfmodel.ErrNotCovered if the plan is not purely
// data parallel, or its nodes are unknown.
func Plan(family string, c *spec.Config) (spec.Plan, error) {
	p := c.Plan.Normal()
	if err := p.CheckBounds(); err != nil {
		return p, fmt.Errorf("%s: %w: %w", family, err, perfmodel.ErrNotCovered)
	}
	why := ""
	switch n := c.Shape.Total(); {
	case p.TP > 1 || p.PP > 1 || p.CP > 1 || p.EP > 1:
		why = "has model parallelism"
	case p.Async && p.ParamServers == 0:
		why = "is asynchronous without parameter servers"
	case p.ZeRO > 0 || p.Offload != spec.OffloadNone:
		why = "shards or offloads the training state"
	case n == 0 && p.ParamServers == 0:
		why = "has no shape, so its nodes are unknown"
	case n != 0 && n != p.Devices():
		why = fmt.Sprintf("is for %d devices, shape %s has %d", p.Devices(), c.Shape.Devices, n)
	default:
		return p, nil
	}
	return p, fmt.Errorf("%s: plan %s %s: %w", family, c.Plan, why, perfmodel.ErrNotCovered)
}

// Prediction returns the prediction for a step time of sec seconds, without an interval. The error wraps
// perfmodel.ErrNotCovered if sec is not finite and positive.
func Prediction(by string, c *spec.Config, sec float64, warnings []error) (spec.Prediction, error) {
	rate := float64(c.Plan.GlobalBatch()) / sec
	if !(rate > 0) || math.IsInf(rate, 0) {
		return spec.Prediction{}, fmt.Errorf("%s: plan %s has no finite step time: %w", by, c.Plan, perfmodel.ErrNotCovered)
	}
	return spec.Prediction{Throughput: rate, By: by, Warnings: warnings}, nil
}

// Data is the rows of one job.
type Data struct {
	Job      Job
	Rows     []spec.Measurement // usable rows of Job, in canonical order, repeats not merged
	Left     int                // number of other rows
	Warnings []string
}

// Collect reads the rows of one key for a family. It keeps those of the most frequent job, if covers accepts
// their configuration. The error is that of ctx or data, or wraps perfmodel.ErrTooFewPoints if no row is left.
func Collect(ctx context.Context, family string, data iter.Seq2[spec.Measurement, error], covers func(*spec.Config) error) (Data, error) {
	var out Data
	var all []spec.Measurement
	outside := 0
	for m, err := range data {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return out, fmt.Errorf("%s: reading measurements: %w", family, err)
		case !perfmodel.Usable(m):
			out.Left++
		case len(all) > 0 && m.Config.Key() != all[0].Config.Key():
			return out, fmt.Errorf("%s: rows of %s and of %s, want one job type", family, all[0].Config.Key(), m.Config.Key())
		case covers(&m.Config) != nil:
			outside++
		default:
			all = append(all, m)
		}
	}
	if outside > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s: left out %d rows with plans that the model does not cover", family, outside))
	}
	if len(all) == 0 {
		return out, fmt.Errorf("%s: no usable row, %d left out: %w", family, out.Left+outside, perfmodel.ErrTooFewPoints)
	}
	out.Job = commonestJob(all)
	out.Rows = slices.DeleteFunc(slices.Clone(all), func(m spec.Measurement) bool { return JobOf(&m.Config) != out.Job })
	if n := len(all) - len(out.Rows); n > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%s: left out %d rows that are not of %s", family, n, out.Job))
	}
	out.Left += outside + len(all) - len(out.Rows)
	configs := make([]spec.Config, len(out.Rows))
	for i := range configs {
		configs[i] = out.Rows[i].Config
	}
	order := perfmodel.OrderConfigs(configs, func(i, j int) int {
		a, b := &out.Rows[i], &out.Rows[j]
		return cmp.Or(cmp.Compare(a.MedianStepSec(), b.MedianStepSec()), cmp.Compare(a.PhaseSec["sync"], b.PhaseSec["sync"]))
	})
	rows := make([]spec.Measurement, len(order))
	for to, from := range order {
		rows[to] = out.Rows[from]
	}
	out.Rows = rows
	return out, ctx.Err()
}

// commonestJob returns the job with most rows; ties go to the first in text order.
func commonestJob(rows []spec.Measurement) Job {
	count := map[Job]int{}
	for i := range rows {
		count[JobOf(&rows[i].Config)]++
	}
	best := JobOf(&rows[0].Config)
	for j, n := range count {
		if n > count[best] || n == count[best] && j.String() < best.String() {
			best = j
		}
	}
	return best
}
