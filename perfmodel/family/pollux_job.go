package family

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

// dpJob is what Pollux, Sia and Optimus fit one set of parameters for. Their
// forms speak of replicas, parameter servers, nodes, micro-batch and
// accumulation; rows that differ in anything else that decides a replica's
// speed are other jobs.
type dpJob struct {
	spec.Key
	Seq       int            `json:"seq_len,omitempty"`
	Precision spec.Precision `json:"precision,omitempty"` // "" = not recorded: any
	Recompute spec.Recompute `json:"recompute"`
	Servers   bool           `json:"servers,omitempty"` // has parameter servers
	Update    int            `json:"update,omitempty"`  // samples of an asynchronous update; 0 = synchronous
}

func dpJobOf(c *spec.Config) dpJob {
	p := c.Plan.Normal()
	j := dpJob{Key: c.Key(), Seq: c.Seq(), Precision: p.Precision, Recompute: p.Recompute, Servers: p.ParamServers > 0}
	if p.Async {
		j.Update = p.MicroBatch * p.AccumSteps
	}
	return j
}

func (j dpJob) String() string {
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

// covers returns an error wrapping perfmodel.ErrNotCovered, by family who, for a
// Config that is not of j.
func (j dpJob) covers(who string, c *spec.Config) error {
	got := dpJobOf(c)
	if j.Precision == "" || got.Precision == "" {
		got.Precision = j.Precision
	}
	if got != j {
		return fmt.Errorf("%s: fitted to %s, not %s: %w", who, j, got, perfmodel.ErrNotCovered)
	}
	return nil
}

// dpPlan returns the normal plan of c, or an error wrapping
// perfmodel.ErrNotCovered if it is more than data parallel or does not say on
// which nodes it runs.
func dpPlan(who string, c *spec.Config) (spec.Plan, error) {
	p := c.Plan.Normal()
	if err := checkDegrees(&p); err != nil {
		return p, fmt.Errorf("%s: %w", who, err)
	}
	why := ""
	switch n := c.Shape.Total(); {
	case p.TP > 1 || p.PP > 1 || p.CP > 1 || p.EP > 1:
		why = "has model parallelism"
	case p.Async && p.ParamServers == 0:
		why = "is asynchronous without parameter servers"
	case p.ZeRO > 0 || p.Offload != spec.OffloadNone:
		why = "shards or offloads what each replica keeps"
	case n == 0 && p.ParamServers == 0:
		why = "has no shape, so the nodes are not known"
	case n != 0 && n != p.Devices():
		why = fmt.Sprintf("is for %d devices, shape %s has %d", p.Devices(), c.Shape.Devices, n)
	default:
		return p, nil
	}
	return p, fmt.Errorf("%s: plan %s %s: %w", who, c.Plan, why, perfmodel.ErrNotCovered)
}

// dpPrediction makes a prediction of a step time, or an error wrapping
// perfmodel.ErrNotCovered if that is none. These models give no interval.
func dpPrediction(by string, c *spec.Config, sec float64, warnings []error) (spec.Prediction, error) {
	rate := float64(c.Plan.GlobalBatch()) / sec
	if !(rate > 0) || math.IsInf(rate, 0) {
		return spec.Prediction{}, fmt.Errorf("%s: plan %s has no finite step time: %w", by, c.Plan, perfmodel.ErrNotCovered)
	}
	return spec.Prediction{Throughput: rate, By: by, Warnings: warnings}, nil
}

// dpRows is what of some rows a fit may use.
type dpRows struct {
	job      dpJob
	rows     []spec.Measurement // usable ones of job, in canonical order, repeats kept
	left     int                // others
	warnings []string
}

// collectDP reads the rows of one key for family who and keeps those of the job
// most of them are of, if can accepts their configuration.
func collectDP(ctx context.Context, who string, data iter.Seq2[spec.Measurement, error], can func(*spec.Config) error) (dpRows, error) {
	var out dpRows
	var all []spec.Measurement
	outside := 0
	for m, err := range data {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return out, fmt.Errorf("%s: reading measurements: %w", who, err)
		case !perfmodel.Usable(m):
			out.left++
		case len(all) > 0 && m.Config.Key() != all[0].Config.Key():
			return out, fmt.Errorf("%s: rows of %s and of %s, want one job type", who, all[0].Config.Key(), m.Config.Key())
		case can(&m.Config) != nil:
			outside++
		default:
			all = append(all, m)
		}
	}
	if outside > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("%s: %d rows of plans it has no terms for are left out", who, outside))
	}
	if len(all) == 0 {
		return out, fmt.Errorf("%s: no usable row, %d left out: no parameter is identifiable: %w", who, out.left+outside, perfmodel.ErrTooFewPoints)
	}
	out.job = commonestJob(all)
	out.rows = slices.DeleteFunc(slices.Clone(all), func(m spec.Measurement) bool { return dpJobOf(&m.Config) != out.job })
	if n := len(all) - len(out.rows); n > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("%s: %d rows that are not of %s are left out", who, n, out.job))
	}
	out.left += outside + len(all) - len(out.rows)
	slices.SortStableFunc(out.rows, func(a, b spec.Measurement) int {
		return cmp.Or(perfmodel.CompareConfigs(a.Config, b.Config), cmp.Compare(a.MedianStepSec(), b.MedianStepSec()), cmp.Compare(a.PhaseSec["sync"], b.PhaseSec["sync"]))
	})
	return out, nil
}

// commonestJob returns the job most rows are of; ties go to the first in order
// of text.
func commonestJob(rows []spec.Measurement) dpJob {
	count := map[dpJob]int{}
	for i := range rows {
		count[dpJobOf(&rows[i].Config)]++
	}
	best := dpJobOf(&rows[0].Config)
	for j, n := range count {
		if n > count[best] || n == count[best] && j.String() < best.String() {
			best = j
		}
	}
	return best
}
