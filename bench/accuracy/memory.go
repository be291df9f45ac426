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
		{Name: "oom", Doc: "runs that ran out of memory must be predicted to, and runs that completed must not", run: outOfMemory},
	}
}

// errNoMemory is the reason of a family that does not predict memory.
var errNoMemory = unable("predicts no memory")

// need is the predicted memory of a configuration on one device.
type need struct {
	bytes float64
	fits  bool // predicted to run
}

// memoryOf returns the need of a configuration.
type memoryOf func(context.Context, spec.Config) (need, error)

// memoryWithout returns the memory estimate of c trained without a source. For a family that cannot
// be trained anew, it is the estimate with that source in view.
func (b *Bench) memoryWithout(c Contender, source string) (memoryOf, Standing, error) {
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
	return nil, "", errNoMemory
}

// calibratedMemory estimates by a calibration.
func calibratedMemory(cal *memory.Calibration) memoryOf {
	return func(_ context.Context, c spec.Config) (need, error) {
		e, err := cal.For(c)
		if err != nil {
			return need{}, err
		}
		b := e.Plan(c.Plan)
		return need{b.Total(), b.Fits(c.Accelerator.MemBytes)}, nil
	}
}

// predictedMemory takes the memory that p predicts along with the step time.
func predictedMemory(p perfmodel.Predictor) memoryOf {
	return func(ctx context.Context, c spec.Config) (need, error) {
		pred, err := p.Predict(ctx, c)
		if err == nil && !(pred.MemoryBytes > 0) {
			err = errNoMemory
		}
		if err != nil {
			return need{}, err
		}
		e, err := memory.Of(p, memory.Shipped(), c)
		return need{pred.MemoryBytes, pred.MemoryBytes <= memory.Budget(c.Accelerator.MemBytes, e.Plan(c.Plan).LogSD)}, err
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
	r.Figures = []Figure{fraction("mean", r.Mean, 0.12, 0.06)}
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
func predictPeak(ctx context.Context, peak memoryOf, m *spec.Measurement, part string) prediction {
	a := prediction{target: target{id: m.Origin, part: part, config: m.Config, want: m.PeakBytes}}
	n, err := peak(ctx, m.Config)
	a.got, a.err = n.bytes, err
	return a
}

// tally counts rows that are predicted to run out of memory.
type tally struct {
	rows, flagged int
	wrong         []Refusal // rows with a wrong prediction
	refused       []Refusal
}

// add predicts whether m fits, and counts wrong predictions.
func (t *tally) add(ctx context.Context, peak memoryOf, m *spec.Measurement) {
	row := rowName(sourceOf(m), m.Origin)
	over, err := outgrows(ctx, peak, m)
	if err != nil {
		t.refused = append(t.refused, Refusal{row, err.Error()})
		return
	}
	t.rows++
	if over {
		t.flagged++
	}
	if over != (m.Outcome == spec.OOM) {
		what := "ran out of memory, predicted to fit"
		if over {
			what = "ran, predicted to run out of memory"
		}
		t.wrong = append(t.wrong, Refusal{row, fmt.Sprintf("%s on %s %s", m.Config.Model.Name, m.Config.Accelerator.Name, what)})
	}
}

// outgrows reports whether m is predicted to need more memory than its devices have.
// In plain data parallelism without a recorded micro-batch, the row fits if any
// micro-batch does: half, a quarter, ... of the default, with more accumulation.
func outgrows(ctx context.Context, peak memoryOf, m *spec.Measurement) (bool, error) {
	c := m.Config
	for {
		n, err := peak(ctx, c)
		if err != nil || n.fits {
			return false, err
		}
		if published := strings.HasPrefix(m.Source, "published/"); published || c.Plan.TP*c.Plan.PP > 1 || c.Plan.MicroBatch%2 == 1 {
			return true, nil
		}
		c.Plan.MicroBatch, c.Plan.AccumSteps = c.Plan.MicroBatch/2, 2*c.Plan.AccumSteps
	}
}

// bszJob is the job type of Rubick's traces with rows that ran out of memory.
const bszJob = "llama7b_bsz16"

func outOfMemory(ctx context.Context, b *Bench, c Contender) (Result, error) {
	rows, err := b.memoryRows()
	if err != nil {
		return Result{}, err
	}
	var failed, ran, open tally
	indivisible, as := 0, LeftOut
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
		switch {
		case m.Outcome == spec.Failed:
			indivisible++ // refused by the importer, whatever its memory
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
	told, all := share(failed.flagged, failed.rows+len(failed.refused)), share(ran.flagged+open.flagged, ran.rows+open.rows)
	r.Figures = []Figure{
		{Name: "out of memory, predicted", Value: told, Unit: "1", Must: Limit{AtLeast: 1}, Aim: Limit{AtLeast: 1}},
		fraction("ran as recorded, predicted out of memory", share(ran.flagged, ran.rows), 0.05, 0.01),
		{Name: "the same, rows with plans in part unrecorded too", Value: all, Unit: "1"},
	}
	r.Notes = append(r.Notes, fmt.Sprintf("%d of %d rows that ran out of memory predicted to; %d of %d that ran as recorded predicted to run out, %d of %d without recorded layers, "+
		"recomputation or micro-batch; %d with a batch that does not divide refused", failed.flagged, failed.rows+len(failed.refused), ran.flagged, ran.rows,
		open.flagged, open.rows, indivisible))
	for _, w := range byReason(append(failed.wrong, ran.wrong...)) {
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
// micro-batch, see outgrows.
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
// with a batch that does not divide, and every row of both data sets that ran.
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
	out = append(out, p.without("")...)
	if len(out) == 0 {
		return nil, errors.New("accuracy: no row with a known outcome")
	}
	return out, nil
}
