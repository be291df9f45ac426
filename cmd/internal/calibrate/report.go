package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Report is the JSON of pacer calibrate.
type Report struct {
	Source    string              `json:"source"`            // of the stored rows
	Machine   *campaign.SetupJSON `json:"machine,omitempty"` // nil if others measured
	BudgetSec float64             `json:"budget_s,omitempty"`
	WallSec   float64             `json:"wall_s,omitempty"`
	Stopped   string              `json:"stopped,omitempty"`
	Space     int                 `json:"space,omitempty"` // number of points that may be measured
	Ranks     int                 `json:"ranks,omitempty"` // of them, one rank of a plan for more devices
	Points    int                 `json:"points"`          // measured, with any outcome
	Repeats   int                 `json:"repeats"`         // further runs of one of them, the reference
	Fitted    int                 `json:"fitted"`          // rows fitted for the score
	LeaveOne  bool                `json:"leave_one_out"`   // each plan was predicted by a fit to the others; else plans were held out
	Before    Accuracy            `json:"before"`
	After     Accuracy            `json:"after"`
	Halved    bool                `json:"halved"`
	Reasons   []string            `json:"reasons"` // why the error was not halved
	Plans     []Scored            `json:"plans"`   // scored
	Best      []BestPlan          `json:"best"`
	Reference *Reference          `json:"reference,omitempty"` // the speed of the machine over time; nil = not measured again
	Cards     []perfmodel.Card    `json:"cards"`               // of the stored fits, to all rows
	Warnings  []string            `json:"warnings"`
	Next      []string            `json:"next"` // commands
}

// BestPlan is the plan with the highest predicted throughput among those considered.
type BestPlan struct {
	Model       string     `json:"model"`
	Devices     int        `json:"devices"`
	GlobalBatch int        `json:"global_batch"`
	Before      *Predicted `json:"before"`
	After       *Predicted `json:"after"`
}

// Predicted is a plan with its throughput.
type Predicted struct {
	Plan       string  `json:"plan"`
	Throughput float64 `json:"samples_per_s"`
	Lo         float64 `json:"samples_per_s_lo"` // of the 90 % interval; 0 = none
	Hi         float64 `json:"samples_per_s_hi"`
	Measured   float64 `json:"measured_samples_per_s,omitempty"`

	brief string // Plan in a table
}

// report scores the rows of a calibration, fits all of them and keeps the fits in reg.
func (s *session) report(ctx context.Context, rows *measured, reg *registry.Registry) (*Report, error) {
	fam, err := family.Lookup(family.Default)
	if err != nil {
		return nil, err
	}
	machine := s.JSON()
	r := &Report{Source: s.Campaign.Source(), Machine: &machine, BudgetSec: s.o.Budget.Seconds(), WallSec: rows.WallSec, Stopped: rows.Stopped, Space: len(s.Points), Ranks: aloneCount(s.Points)}
	b := basis{family: fam, rows: rows.all(), fitted: len(usable(rows.Chosen)), read: s.read}
	if r.Plans, b.outliers, err = scoreHeldOut(ctx, fam, rows.HeldOut, rows.fitted()); err != nil {
		return nil, err
	}
	r.Repeats, r.Reference, r.Warnings = len(rows.Repeats), rows.speed(), s.fewPlans()
	if len(r.Plans) == 0 && heldOutCount(len(s.Points)) > 0 {
		r.Warnings = append(r.Warnings, "no plan held out was measured undisturbed: the error after the calibration is unknown")
	}
	r.Warnings = append(r.Warnings, r.onlyRanks()...)
	b.plans = wholePlans(s.Points)
	return r, r.finish(ctx, b, s.o, reg)
}

// basis is what a report is made of, besides the scores.
type basis struct {
	family   perfmodel.Family
	rows     []spec.Measurement // all measured ones
	fitted   int                // of them, the usable ones fitted for the scores
	outliers []perfmodel.Outlier
	plans    []spec.Config // among which the best is found
	// read reads the store, so that the fits include the other rows there; nil = only rows.
	read func(store.Filter) ([]spec.Measurement, error)
}

// fewPlans warns about a space that is too small to hold plans out and fit to others.
func (s *session) fewPlans() []string {
	n := len(wholePlans(s.Points))
	if n >= 3*leastHeldOut {
		return nil
	}
	text := fmt.Sprintf("the space has only %s: %d held out, %d to fit", spec.Count(n, "plan"), heldOutCount(n), n-heldOutCount(n))
	if s.o.isCampaign() && !s.o.Likely {
		text += "; --likely proposes other plans"
	}
	return []string{text}
}

// finish sums up the scores, stores the fits to all rows of the store, and finds the best plans.
func (r *Report) finish(ctx context.Context, b basis, o Options, reg *registry.Registry) error {
	r.Points, r.Fitted = len(b.rows)-r.Repeats, b.fitted
	r.Before, r.After = accuracies(r.Plans)
	r.Halved, r.Reasons = r.halved(), r.reasons(b.rows, b.fitted, b.outliers)
	for _, text := range []string{r.Reference.text(), leftOut(b.rows)} {
		if text != "" && !slices.Contains(r.Reasons, text) {
			r.Warnings = append(r.Warnings, text)
		}
	}
	analytic, err := query.Analytic()
	if err != nil {
		return err
	}
	opts, rows := perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{Seed: o.Seed, Unfitted: analytic}}, b.rows
	if b.read != nil {
		if rows, err = query.WithPool(b.family, rows, nil, &opts, b.read); err != nil {
			return err
		}
	}
	var skipped []string
	if r.Cards, skipped, err = query.FitAll(ctx, b.family, reg, rows, opts); err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, skipped...)
	stored := fits{}
	for _, c := range r.Cards {
		if stored[c.Key], _, err = reg.Get(c.Key, c.Family); err != nil {
			return err
		}
		if !c.BeatsUnfitted() {
			r.Warnings = append(r.Warnings, c.Key.String()+": the fit does not beat the analytic model, which plan, predict and curve continue to use; --family "+c.Family+" selects the fit")
		}
	}
	return r.setBest(ctx, b, stored, o)
}

// setBest finds the best plan of each key on all devices, before and after.
func (r *Report) setBest(ctx context.Context, b basis, after fits, o Options) error {
	byKey := map[spec.Key][]spec.Config{}
	var keys []spec.Key
	for _, c := range b.plans {
		k := c.Key()
		if c.Plan.Devices() != o.Devices {
			continue
		}
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], c)
	}
	slices.SortFunc(keys, perfmodel.CompareKeys)
	for _, k := range keys {
		batch := usual(byKey[k], o.batch())
		of := slices.DeleteFunc(byKey[k], func(c spec.Config) bool { return c.Plan.GlobalBatch() != batch })
		out := BestPlan{Model: k.Model, Devices: o.Devices, GlobalBatch: batch}
		var err error
		if out.Before, err = best(ctx, fits{}.of(b.family, k), of, b.rows); err == nil {
			out.After, err = best(ctx, after.of(b.family, k), of, b.rows)
		}
		if err != nil {
			return err
		}
		r.Best = append(r.Best, out)
		r.Next = append(r.Next, fmt.Sprintf("pacer plan --model %s --accelerator %s --devices %d --global-batch %d", console.ShellLine(k.Model), console.ShellLine(k.Accelerator), o.Devices, batch))
	}
	return nil
}

// best returns the plan of the highest predicted throughput, nil if p covers none.
func best(ctx context.Context, p perfmodel.Predictor, configs []spec.Config, rows []spec.Measurement) (out *Predicted, err error) {
	if p == nil {
		return nil, nil
	}
	for _, c := range configs {
		sec, err := predict(ctx, p, c, 1)
		if err != nil {
			return nil, err
		}
		b := float64(c.Plan.GlobalBatch())
		if sec == nil || out != nil && b/sec.Sec <= out.Throughput {
			continue
		}
		out = &Predicted{Plan: c.Plan.String(), brief: brief(c.Plan), Throughput: b / sec.Sec}
		if sec.Lo > 0 {
			out.Lo, out.Hi = b/sec.Hi, b/sec.Lo
		}
		for _, m := range perfmodel.MergeRepeats(usable(rows)) {
			if identity(m.Config) == identity(c) {
				out.Measured = b / m.MedianStepSec()
			}
		}
	}
	return out, nil
}

// CSV has a row per scored plan.
func (r *Report) CSV() [][]string {
	csv := [][]string{{"model", "accelerator", "plan", "shape", "seq_len", "measured_s", "noise", "before_s", "before_lo_s", "before_hi_s", "after_s", "after_lo_s", "after_hi_s", "alone_stage"}}
	for _, s := range r.Plans {
		line := []string{s.Model, s.Accelerator, s.Plan, s.Shape, strconv.Itoa(s.SeqLen), number.Float(s.MeasuredSec), number.Float(s.Noise)}
		for _, p := range []*StepSec{s.Before, s.After} {
			if p == nil {
				line = append(line, "", "", "")
				continue
			}
			line = append(line, number.Float(p.Sec), number.Float(p.Lo), number.Float(p.Hi))
		}
		csv = append(csv, append(line, strconv.Itoa(s.AloneStage)))
	}
	return csv
}

// orEmpty replaces nil lists, which are null in JSON.
func (r *Report) orEmpty() *Report {
	r.Reasons, r.Warnings, r.Next = query.OrEmpty(r.Reasons), query.OrEmpty(r.Warnings), query.OrEmpty(r.Next)
	r.Plans, r.Best, r.Cards = query.OrEmpty(r.Plans), query.OrEmpty(r.Best), query.OrEmpty(r.Cards)
	return r
}

// Result is what the command prints.
func (r *Report) Result() console.Result {
	return console.Result{JSON: r.orEmpty(), CSV: r.CSV(), Table: r.print}
}

// usual returns want if some of configs have this global batch, else the batch that most of them have, the largest
// of several; 0 without configs.
func usual(configs []spec.Config, want int) int {
	count := map[int]int{}
	for _, c := range configs {
		count[c.Plan.GlobalBatch()]++
	}
	if count[want] > 0 || len(count) == 0 {
		return want * min(count[want], 1)
	}
	return slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b int) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b))
	})
}
