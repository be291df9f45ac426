package accuracy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func memoryProtocols() []Protocol {
	return []Protocol{
		{Name: "memory", Doc: "peak memory per device of data/published and data/field, each source left out in turn", run: peakMemory},
		{Name: "oom", Doc: "runs that ran out of memory must not be predicted to fit, and runs that completed must not be predicted to run out", run: outOfMemory},
	}
}

// errNoMemory is the reason of a family that does not predict memory.
var errNoMemory = unable("predicts no memory")

// peaks predicts the memory of one device.
type peaks struct {
	bytes func(context.Context, *spec.Measurement) (float64, error) // in a row's own kind of figure
	fits  func(context.Context, *spec.Config) (float64, error)      // probability that the devices have enough
}

// memoryWithout returns the memory estimate of c trained without a source. For a family that cannot
// be trained anew, it is the estimate with that source in view.
func (b *Bench) memoryWithout(c Contender, source string) (peaks, Standing, error) {
	switch {
	case c.Train != nil:
		cal, err := b.calibrations.get(source, func() (*memory.Calibration, error) {
			p, err := b.published()
			if err != nil {
				return nil, err
			}
			return memory.Calibrate(context.Background(), p.others(source))
		})
		return calibratedMemory(cal), LeftOut, err
	case c.Unfitted != nil:
		return predictedMemory(c.Unfitted), InView, nil
	}
	return peaks{}, "", errNoMemory
}

// calibratedMemory estimates by a calibration.
func calibratedMemory(cal *memory.Calibration) peaks {
	return peaks{
		func(_ context.Context, m *spec.Measurement) (float64, error) {
			e, err := cal.For(m.Config)
			if err != nil {
				return 0, err
			}
			return e.Measured(m.Config.Plan, memory.KindOf(m)), nil
		},
		func(_ context.Context, c *spec.Config) (float64, error) {
			e, err := cal.For(*c)
			if err != nil {
				return 0, err
			}
			return e.Plan(c.Plan).FitProbability(c.Accelerator.MemBytes), nil
		},
	}
}

// predictedMemory takes the memory that p predicts along with the step time. It counts all memory in use; what a
// row's figure does not count is taken off in proportion to the estimate.
func predictedMemory(p perfmodel.Predictor) peaks {
	estimate := func(ctx context.Context, c *spec.Config) (float64, memory.Estimator, error) {
		pred, err := p.Predict(ctx, *c)
		if err == nil && !(pred.MemoryBytes > 0) {
			err = errNoMemory
		}
		if err != nil {
			return 0, memory.Estimator{}, err
		}
		e, err := memory.Of(p, memory.Shipped(), *c)
		return pred.MemoryBytes, e, err
	}
	return peaks{
		func(ctx context.Context, m *spec.Measurement) (float64, error) {
			bytes, e, err := estimate(ctx, &m.Config)
			if err != nil {
				return 0, err
			}
			return bytes * e.Measured(m.Config.Plan, memory.KindOf(m)) / e.Bytes(m.Config.Plan), nil
		},
		func(ctx context.Context, c *spec.Config) (float64, error) {
			bytes, e, err := estimate(ctx, c)
			if err != nil {
				return 0, err
			}
			return memory.Breakdown{Parameters: bytes, LogSD: e.Plan(c.Plan).LogSD}.FitProbability(c.Accelerator.MemBytes), nil
		},
	}
}

func peakMemory(ctx context.Context, b *Bench, c Contender) (Result, error) {
	rows, err := b.peaks()
	if err != nil {
		return Result{}, err
	}
	sources := slices.Sorted(maps.Keys(rows))
	standings := make([]Standing, len(sources))
	predictions, err := b.predictParts(len(sources), func(i int) ([]prediction, error) {
		source := sources[i]
		peak, as, err := b.memoryWithout(c, source)
		if err != nil {
			return nil, err
		}
		standings[i] = as
		var out []prediction
		for _, m := range rows[source] {
			out = append(out, predictPeak(ctx, peak, &m, source))
		}
		return out, ctx.Err()
	})
	if err != nil {
		return Result{}, err
	}
	r := scored(predictions)
	if r.Rows == 0 {
		return Result{}, errNoMemory
	}
	r.Standing = standings[0]
	r.Figures = append([]Figure{fraction("mean", r.Mean, 0.04, 0.03)}, sourceFigures(r.Parts)...)
	return r, nil
}

// peaks returns the rows of whole training runs that print peak memory and record what determines it, by source.
func (b *Bench) peaks() (map[string][]spec.Measurement, error) {
	out := map[string][]spec.Measurement{}
	for _, dir := range []string{publishedDir, fieldDir} {
		p, err := b.read(dir)
		if err != nil {
			return nil, err
		}
		for _, s := range p.sources {
			for _, m := range p.usable[s] {
				if m.PeakBytes > 0 && m.Config.Model.Layers > 0 && m.Config.Seq() > 0 && recorded(&m, "recompute") {
					out[s] = append(out[s], m)
				}
			}
		}
	}
	return out, nil
}

// predictPeak predicts the peak memory of m's configuration.
func predictPeak(ctx context.Context, peak peaks, m *spec.Measurement, part string) prediction {
	a := prediction{target: target{id: m.Origin, part: part, config: m.Config, want: m.PeakBytes}}
	a.got, a.err = peak.bytes(ctx, m)
	return a
}

// tally counts rows by the verdict on them.
type tally struct {
	rows, unsure, exceeds int
	wrong                 []Refusal // rows with a wrong prediction
	refused               []Refusal
}

// add judges whether m fits, and notes wrong verdicts: a row that ran is said not to fit, or one that ran out of memory
// is said to fit.
func (t *tally) add(ctx context.Context, peak peaks, m *spec.Measurement) {
	row := rowName(sourceOf(m), m.Origin)
	v, err := verdictOn(ctx, peak, m)
	if err != nil {
		t.refused = append(t.refused, Refusal{row, err.Error()})
		return
	}
	t.rows++
	switch v {
	case memory.Unsure:
		t.unsure++
	case memory.Exceeds:
		t.exceeds++
	}
	what := ""
	switch {
	case m.Outcome == spec.OOM && v == memory.Fits:
		what = "ran out of memory, predicted to fit"
	case m.Outcome != spec.OOM && v == memory.Exceeds:
		what = "ran, predicted to run out of memory"
	default:
		return
	}
	t.wrong = append(t.wrong, Refusal{row, fmt.Sprintf("%s on %s %s", m.Config.Model.Name, m.Config.Accelerator.Name, what)})
}

// notSure counts the rows that are not said to fit.
func (t *tally) notSure() int { return t.unsure + t.exceeds }

// verdictOn judges whether m fits its devices, over all settings that the row does not record. Rubick's traces do not
// record the micro-batch of plain data parallelism.
func verdictOn(ctx context.Context, peak peaks, m *spec.Measurement) (memory.Verdict, error) {
	c, open := m.Config, m.Env["unrecorded"]
	if !strings.HasPrefix(m.Source, "published/") {
		if open = ""; c.Plan.TP*c.Plan.PP == 1 {
			open = "micro_batch"
		}
	}
	least, most := 1.0, 0.0
	for _, p := range memory.Alternatives(&c, open) {
		c.Plan = p
		fit, err := peak.fits(ctx, &c)
		if err != nil {
			return "", err
		}
		least, most = min(least, fit), max(most, fit)
	}
	if open == "micro_batch" { // accumulation that is needed was used
		least = most
	}
	return memory.Judge(least, most), nil
}

// bszJob is the job type of Rubick's traces with rows that ran out of memory.
const bszJob = "llama7b_bsz16"

func outOfMemory(ctx context.Context, b *Bench, c Contender) (Result, error) {
	rows, err := b.memoryRows()
	if err != nil {
		return Result{}, err
	}
	var failed, ran, open, adapted tally
	indivisible, other, as := 0, 0, LeftOut
	for i := range rows {
		m := &rows[i]
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		peak, standing, err := b.memoryWithout(c, leftOutFor(m))
		if err != nil {
			return Result{}, err
		}
		if standing == InView {
			as = InView
		}
		if m.Config.Model.Adapter.Kind != spec.FullTraining && m.Outcome == spec.OK {
			adapted.add(ctx, peak, m)
		}
		switch {
		case m.Outcome == spec.Failed:
			indivisible++ // refused by the importer, whatever its memory
		case m.WrongConfig():
			other++
		case m.Outcome == spec.OOM:
			failed.add(ctx, peak, m)
		case memoryKnown(m):
			ran.add(ctx, peak, m)
		default:
			open.add(ctx, peak, m)
		}
	}
	if failed.rows+ran.rows == 0 {
		return Result{}, errNoMemory
	}
	r := Result{Standing: as, Refusals: slices.Concat(failed.refused, ran.refused, open.refused)}
	r.Rows, r.Refused = failed.rows+ran.rows+open.rows, len(r.Refusals)
	r.Figures = []Figure{
		{Name: "out of memory, predicted", Value: share(failed.notSure(), failed.rows+len(failed.refused)), Unit: "1", Must: Limit{AtLeast: 1}, Aim: Limit{AtLeast: 1}},
		fraction("ran as recorded, predicted out of memory", share(ran.exceeds, ran.rows), 0.01, 0),
		{Name: "ran as recorded, not sure to fit", Value: share(ran.notSure(), ran.rows), Unit: "1"},
		{Name: "ran, predicted out of memory, rows with plans in part unrecorded too", Value: share(ran.exceeds+open.exceeds, ran.rows+open.rows), Unit: "1"},
		{Name: "adapters, ran, sure to fit", Value: share(adapted.rows-adapted.notSure(), adapted.rows), Unit: "1", Must: Limit{AtLeast: 1}},
		{Name: "adapters, ran, predicted out of memory", Value: share(adapted.exceeds, adapted.rows), Unit: "1"},
	}
	r.Notes = append(r.Notes, fmt.Sprintf("of %d rows that ran out of memory, %d are predicted to and %d are unsure; of %d that ran as recorded, %d are predicted to run out and %d are unsure; "+
		"of %d without recorded layers, recomputation or micro-batch %d and %d; %d with a batch that does not divide refused; %d that ran another configuration than recorded, such as adapters only, not counted", failed.rows+len(failed.refused), failed.exceeds, failed.unsure,
		ran.rows, ran.exceeds, ran.unsure, open.rows, open.exceeds, open.unsure, indivisible, other))
	for _, w := range byReason(slices.Concat(failed.wrong, ran.wrong, open.wrong)) {
		r.Notes = append(r.Notes, "wrong: "+w.String())
	}
	return r, nil
}

// share returns n of total, 0 of none.
func share(n, total int) float64 {
	if total == 0 {
		return 0
	}
	return float64(n) / float64(total)
}

// memoryKnown reports whether m records what determines its memory: layers,
// micro-batch and recomputation. For Rubick's traces, which do not record the
// micro-batch, see verdictOn.
func memoryKnown(m *spec.Measurement) bool {
	if !strings.HasPrefix(m.Source, "published/") {
		return true
	}
	return m.Config.Model.Layers > 0 && recorded(m, "recompute") && recorded(m, "micro_batch") && !m.WrongConfig()
}

// leftOutFor returns the source to leave out when m is scored.
func leftOutFor(m *spec.Measurement) string {
	if strings.HasPrefix(m.Source, "published/") {
		return sourceOf(m)
	}
	return ""
}

// memoryRows returns the rows near the limit of memory: those of bigscience
// (with layers) and of Rubick's llama7b_bsz16 that ran out of memory, its row
// with a batch that does not divide, and every row that ran of both data sets and of data/field.
func (b *Bench) memoryRows() ([]spec.Measurement, error) {
	p, err := b.published()
	if err != nil {
		return nil, err
	}
	traces, err := b.dataset("rubick")
	if err != nil {
		return nil, err
	}
	var out []spec.Measurement
	for _, m := range p.all {
		if m.Outcome == spec.OOM && m.Config.Model.Layers > 0 && m.Config.Seq() > 0 {
			out = append(out, m)
		}
	}
	for _, m := range traces {
		if m.Outcome == spec.OK || m.Config.Model.Name == bszJob {
			out = append(out, m)
		}
	}
	field, err := b.read(fieldDir)
	if err != nil {
		return nil, err
	}
	out = append(append(out, p.without("")...), field.without("")...)
	if len(out) == 0 {
		return nil, errors.New("accuracy: no row with a known outcome")
	}
	return out, nil
}
