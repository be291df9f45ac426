package calibrate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// site is a runner on a machine slower than the analytic model predicts: by a factor, and by another one with
// tensor parallelism. Every point takes 10 s of its clock.
type site struct {
	now    time.Time
	change func(c spec.Config) float64 // further factor of a point, nil = 1
	before func(run int)               // called before each point
	runs   int
}

func newSite() *site { return &site{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// pointTime is what a point of a site takes.
const pointTime = 10 * time.Second

func (s *site) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	if s.before != nil {
		s.before(s.runs)
	}
	if err := ctx.Err(); err != nil {
		return spec.Measurement{}, err
	}
	s.runs++
	s.now = s.now.Add(pointTime)
	p, err := query.Analytic()
	if err != nil {
		return spec.Measurement{}, err
	}
	pred, err := p.Predict(ctx, c)
	if err != nil {
		return spec.Measurement{}, err
	}
	sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
	sec *= 1.6
	if c.Plan.TP > 1 {
		sec *= 1.5
	}
	if s.change != nil {
		sec *= s.change(c)
	}
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec, 1.01 * sec, 0.99 * sec}, Env: map[string]string{profiler.EnvHalfWidth: "0.01"}}, nil
}

// points returns a budget for n points, and for the rounding of their expected time.
func points(n int) time.Duration { return time.Duration(n)*pointTime + pointTime/2 }

// options calibrate gpt2-xl on four devices within thirty points.
func options() Options {
	return Options{Model: "gpt2-xl", Accelerator: "h100", Devices: 4, Budget: points(30), Label: "1", Runner: "synthetic", Seed: 1}
}

// openAt opens a calibration that s measures, with the rows of db.
func openAt(t *testing.T, s *site, o Options, db *store.DB) *session {
	t.Helper()
	out, _, err := open(t.Context(), o, &query.Resolver{Read: func(use func(reader.Store) error) error { return use(db) }},
		func(ctx context.Context, f store.Filter) ([]spec.Measurement, error) { return query.RowsOf(ctx, db, f) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	out.Profiler.Runner, out.Profiler.Now = s, func() time.Time { return s.now }
	return out
}

func measureAt(t *testing.T, s *site, o Options, db *store.DB) (*session, *measured) {
	t.Helper()
	out := openAt(t, s, o, db)
	rows, err := out.measure(t.Context(), db, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return out, rows
}

func identities(rows []spec.Measurement) map[profiler.Identity]bool {
	out := map[profiler.Identity]bool{}
	for _, m := range rows {
		out[identity(m.Config)] = true
	}
	return out
}

// TestCalibrationReducesError: on plans held out, the error falls to less than half, within the budget, and the fit
// that is stored is of all rows.
func TestCalibrationReducesError(t *testing.T) {
	db, reg := querytest.Open(t)
	s, rows := measureAt(t, newSite(), options(), db)
	r, err := s.report(t.Context(), rows, reg)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.HeldOut) != 10 || len(rows.Chosen) != 17 || len(rows.Repeats) != 3 || rows.WallSec != 300 {
		t.Errorf("%d held out, %d chosen and %d repeats in %g s, want a third of the budget of 30 points held out, and a tenth for repeats",
			len(rows.HeldOut), len(rows.Chosen), len(rows.Repeats), rows.WallSec)
	}
	held := identities(rows.HeldOut)
	for id := range identities(rows.Chosen) {
		if held[id] {
			t.Errorf("%s was held out and chosen", id)
		}
	}
	if r.Before.Plans != 10 || r.Before.Mean < 0.35 || !r.Halved || r.After.Mean > 0.1 || len(r.Reasons) != 0 {
		t.Errorf("before %+v, after %+v, reasons %q", r.Before, r.After, r.Reasons)
	}
	if r.After.HalfWidth >= r.Before.HalfWidth || r.After.Coverage < 0.8 {
		t.Errorf("intervals: before %+v, after %+v", r.Before, r.After)
	}
	if len(r.Cards) != 1 || r.Cards[0].NFit != 27 {
		t.Errorf("cards %+v, want one of 27 plans", r.Cards)
	}
	stored, err := query.RowsOf(t.Context(), db, store.Filter{Sources: []string{"campaign/calibrate-GPT2-XL"}})
	if err != nil || len(stored) != 30 {
		t.Errorf("%d rows stored, %v", len(stored), err)
	}
	best := r.Best[0]
	if slow := best.Before.Throughput / best.After.Throughput; best.Devices != 4 || best.GlobalBatch != 64 || slow < 1.5 || slow > 1.8 {
		t.Errorf("best before %+v, after %+v", best.Before, best.After)
	}
}

// TestMachineBecomesSlower: points held out and chosen ones take turns, so that a change of speed is no bias, and it is
// named as the reason.
func TestMachineBecomesSlower(t *testing.T) {
	db, reg := querytest.Open(t)
	at := newSite()
	speed := 1.0
	at.change = func(spec.Config) float64 { return speed }
	at.before = func(run int) {
		if run == 15 {
			speed = 2
		}
	}
	s, rows := measureAt(t, at, options(), db)
	early, late := 0, 0
	for _, m := range rows.HeldOut {
		if m.At.Before(rows.Chosen[0].At) {
			early++
		}
		if m.At.After(rows.Chosen[len(rows.Chosen)/2].At) {
			late++
		}
	}
	if early == 0 || late == 0 || early > len(rows.HeldOut)/2 {
		t.Errorf("of %d points held out, %d were measured before the chosen ones and %d after half of them", len(rows.HeldOut), early, late)
	}
	r, err := s.report(t.Context(), rows, reg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Halved || !strings.Contains(strings.Join(r.Reasons, "; "), "times slower meanwhile") {
		t.Errorf("error %.3f -> %.3f, reasons %q; want the change of speed", r.Before.Mean, r.After.Mean, r.Reasons)
	}
}

// TestDrift: a change of speed is distinguished from scatter, at any times and in any order of the plans.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		slower []float64 // measured over predicted, by time
		want   string
	}{
		{[]float64{1, 1.02, 0.98, 1.5, 1.52, 1.48}, "about 1.5 times slower"},
		{[]float64{2, 2.02, 1.98, 1, 1.01, 0.99}, "about 2.0 times faster"},
		{[]float64{1, 1, 1, 1.3, 1.3, 1.3}, "about 1.3 times slower"},
		{[]float64{1.5, 1.5, 1.5, 1.5, 1.5, 1.5}, ""},
		{[]float64{1, 1.01, 0.99, 1.08, 1.09, 1.07}, ""},             // too little to explain an error
		{[]float64{1, 2, 0.7, 1.5, 0.9, 2.2}, ""},                    // scatter
		{[]float64{1, 1, 2, 2}, ""},                                  // too few
		{[]float64{1, 1.5, 1, 1.5, 1, 1.5, 1, 1.5, 1, 1.5, 1.5}, ""}, // by plan, not by time
	} {
		r := &Report{}
		for i := range c.slower {
			k := (5*i + 2) % len(c.slower) // another order: no length has a factor 5
			r.Plans = append(r.Plans, Scored{After: &StepSec{Error: 1/c.slower[k] - 1}, at: time.Unix(int64(1000*k+1), 0)})
		}
		r.Plans = append(r.Plans, Scored{at: time.Unix(1, 0)}, Scored{After: &StepSec{Error: 9}}) // no prediction, no time
		if got := r.drift(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.slower, got, c.want)
		}
	}
}

// TestKeptFitHasAllRowsOfTheStore: those that were measured before, too.
func TestKeptFitHasAllRowsOfTheStore(t *testing.T) {
	db, reg := querytest.Open(t)
	s, rows := measureAt(t, newSite(), options(), db)
	other := rows.all()[0]
	other.Source, other.Config.Plan.MicroBatch = "campaign/earlier", 2*other.Config.Plan.MicroBatch
	if err := db.Put(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.read = func(f store.Filter) ([]spec.Measurement, error) { return query.RowsOf(t.Context(), db, f) }
	r, err := s.report(t.Context(), rows, reg)
	if err != nil || len(r.Cards) != 1 || r.Cards[0].NFit != 28 || r.Points != 27 || r.Repeats != 3 {
		t.Errorf("%v, %d points, cards %+v, want 27 and one of 28 plans", err, r.Points, r.Cards)
	}
}

// TestHeldOutRowsAreNotFitted: the step times of plans held out change neither the points that are chosen nor the
// predictions that they are scored with.
func TestHeldOutRowsAreNotFitted(t *testing.T) {
	run := func(change func(spec.Config) float64) (*measured, *Report) {
		db, reg := querytest.Open(t)
		at := newSite()
		at.change = change
		o := options()
		o.Budget = points(15)
		s, rows := measureAt(t, at, o, db)
		r, err := s.report(t.Context(), rows, reg)
		if err != nil {
			t.Fatal(err)
		}
		return rows, r
	}
	rows, r := run(nil)
	held := identities(rows.HeldOut)
	changed, other := run(func(c spec.Config) float64 {
		if held[identity(c)] {
			return 3
		}
		return 1
	})
	for i := range rows.Chosen {
		if identity(rows.Chosen[i].Config) != identity(changed.Chosen[i].Config) {
			t.Fatalf("choice %d is %s, with other step times held out %s", i, rows.Chosen[i].Config.Plan, changed.Chosen[i].Config.Plan)
		}
	}
	both := 0 // slower plans leave time for other ones
	for _, a := range r.Plans {
		i := slices.IndexFunc(other.Plans, func(b Scored) bool { return b.Plan == a.Plan })
		if i < 0 {
			continue
		}
		both++
		if b := other.Plans[i]; a.After.Sec != b.After.Sec || math.Abs(b.MeasuredSec/a.MeasuredSec-3) > 1e-9 {
			t.Errorf("%s: predicted %g s, with other step times held out %g s", a.Plan, a.After.Sec, b.After.Sec)
		}
	}
	if both < len(r.Plans)-1 {
		t.Errorf("%d of %d plans held out are the same", both, len(r.Plans))
	}
	if other.Halved || len(other.Reasons) == 0 {
		t.Errorf("an error of %g after the fit, of %g before, counts as halved; reasons %q", other.After.Mean, other.Before.Mean, other.Reasons)
	}
}

// TestCalibrationContinues: an interrupted calibration continues with the points an uninterrupted one measures.
func TestCalibrationContinues(t *testing.T) {
	whole, _ := querytest.Open(t)
	o := options()
	o.Budget = points(12)
	_, want := measureAt(t, newSite(), o, whole)
	for _, stop := range []int{0, 2, 4, 9, 11} {
		db, _ := querytest.Open(t)
		at := newSite()
		ctx, cancel := context.WithCancel(t.Context())
		at.before = func(run int) {
			if run == stop {
				cancel()
			}
		}
		_, err := openAt(t, at, o, db).measure(ctx, db, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "the same command goes on") {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		at.before = nil
		_, got := measureAt(t, at, o, db)
		if at.runs != 12 {
			t.Errorf("stopped at %d: %d points were measured, want 12", stop, at.runs)
		}
		for name, rows := range map[string][2][]spec.Measurement{"held out": {got.HeldOut, want.HeldOut}, "chosen": {got.Chosen, want.Chosen}} {
			if !maps.Equal(identities(rows[0]), identities(rows[1])) {
				t.Errorf("stopped at %d: other points are %s", stop, name)
			}
		}
	}
}

// TestCalibrationGoesOnWithMore: with a larger budget, points measured before are measured neither again nor for
// the other purpose; under another label all start over.
func TestCalibrationGoesOnWithMore(t *testing.T) {
	db, _ := querytest.Open(t)
	at, o := newSite(), options()
	o.Budget = points(8)
	_, first := measureAt(t, at, o, db)
	if len(first.HeldOut) != 3 || len(first.Chosen) != 5 {
		t.Errorf("%d held out, %d chosen of 8 points", len(first.HeldOut), len(first.Chosen))
	}
	o.Budget = points(24)
	o.Devices = 2 // another space, which draws other plans
	_, more := measureAt(t, at, o, db)
	if at.runs != 24 || len(more.all()) != 24 || len(more.Repeats) != 2 {
		t.Errorf("%d points measured, %d + %d + %d in the end, want 24 with 2 repeats", at.runs, len(more.HeldOut), len(more.Chosen), len(more.Repeats))
	}
	held := identities(more.HeldOut)
	for id := range identities(more.Chosen) {
		if held[id] {
			t.Errorf("%s was held out and chosen", id)
		}
	}
	o.Label = "again"
	if _, again := measureAt(t, at, o, db); at.runs != 48 || len(again.all()) != 24 {
		t.Errorf("under another label: %d points in all", at.runs)
	}
}

// TestSmallBudgets: too few points are held out before none is chosen, and a budget without a choice is an error.
func TestSmallBudgets(t *testing.T) {
	for _, c := range []struct {
		points, held, chosen int
	}{{3, 1, 2}, {4, 2, 2}, {6, 3, 3}, {2, 1, 1}} {
		db, _ := querytest.Open(t)
		o := options()
		o.Budget = points(c.points)
		_, rows := measureAt(t, newSite(), o, db)
		if len(rows.HeldOut) != c.held || len(rows.Chosen) != c.chosen {
			t.Errorf("%d points: %d held out, %d chosen, want %d and %d", c.points, len(rows.HeldOut), len(rows.Chosen), c.held, c.chosen)
		}
	}
	db, _ := querytest.Open(t)
	o := options()
	o.Budget = time.Nanosecond
	at := newSite()
	s := openAt(t, at, o, db)
	if _, err := s.measure(t.Context(), db, io.Discard); at.runs != 0 || fail.Code(err) != fail.NoAnswer || !strings.Contains(err.Error(), "--budget 1ns is too small to measure one plan to fit (budget spent: ") {
		t.Errorf("%d points, %v", at.runs, err)
	}
}

// TestNoUsableRow: without a row to fit, the error says whether the plans failed or were disturbed.
func TestNoUsableRow(t *testing.T) {
	s := &session{o: options()}
	row := func(o spec.Outcome, doubt string) []spec.Measurement {
		return []spec.Measurement{{Outcome: o, StepSec: []float64{1}, Doubt: doubt, Reason: "no memory"}}
	}
	for want, rows := range map[string][]spec.Measurement{
		"none of the plans ran; the last: ":                         row(spec.OOM, ""),
		"all 1 measurement were disturbed (shared); measure again ": row(spec.OK, "shared"),
	} {
		if err := s.verdict(&measured{Chosen: rows}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := s.verdict(&measured{Chosen: row(spec.OK, "")}); err != nil {
		t.Error(err)
	}
}

// TestOpenErrors: what cannot be calibrated is said before anything is measured.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "two.yaml")
	if err := writeFile(file, []byte("name: two\nmodels: [gpt2-xl, llama2-7b]\nspace: {shapes: [4]}\n")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Options)
		code   int
		want   string
	}{
		{func(o *Options) { o.Model = "gpt2-xxl" }, fail.Usage, `unknown model "gpt2-xxl"`},
		{func(o *Options) { o.Model = "none.yaml" }, fail.Failed, "none.yaml"},
		{func(o *Options) { o.Model = "none.json" }, fail.Usage, "none.json"},
		{func(o *Options) { o.Budget = 0 }, fail.Usage, "--budget 0s is not positive"},
		{func(o *Options) { o.Budget = -time.Second }, fail.Usage, "--budget -1s is not positive"},
		{func(o *Options) { o.Label = "a b" }, fail.Usage, `label "a b`},
		{func(o *Options) { o.Runner = "mpirun" }, fail.Usage, `runner "mpirun" is not torchrun, synthetic or replay:SOURCE`},
		{func(o *Options) { o.Accelerator = "h1000" }, fail.Usage, `"h1000"`},
		{func(o *Options) { o.Only = "gpt2-xl" }, fail.Usage, "--only and --likely go with a campaign file; --model gpt2-xl is none"},
		{func(o *Options) { o.Model, o.Only = file, "bert" }, fail.Usage, `--only "bert" is not a model of ` + file + ", want one of GPT2-XL, Llama2-7B"},
		{func(o *Options) { o.Model, o.Likely = file, true }, fail.Usage, "--likely proposes plans for one model: choose it with --only (GPT2-XL, Llama2-7B)"},
		{func(o *Options) { o.Model, o.Seq = file, 5 }, fail.Usage, "--seq 5 conflicts with --model"},
		{func(o *Options) { o.Model, o.GlobalBatch = file, 5 }, fail.Usage, "--global-batch 5 conflicts with --model"},
		{func(o *Options) { o.Model, o.Devices = file, 2 }, fail.NoAnswer, "has no plan that runs on 2 devices of this machine"},
		{func(o *Options) { o.Model, o.Accelerator, o.Devices = "llama3-70b", "t4", 1 }, fail.NoAnswer, "no feasible plan"},
	} {
		o := options()
		c.change(&o)
		_, _, err := open(t.Context(), o, &query.Resolver{Read: func(func(reader.Store) error) error { return nil }},
			func(context.Context, store.Filter) ([]spec.Measurement, error) { return nil, nil })
		if err == nil || fail.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: code %d, %v; want %d, %q", o, fail.Code(err), err, c.code, c.want)
		}
	}
}

// TestOtherMachine: a machine without the requested devices is not measured in their place.
func TestOtherMachine(t *testing.T) {
	m := profiler.Machine{Accelerator: spec.Accelerator{Name: "CPU Acme 2.0GHz, 1 thread"}, Devices: []int{0, 1}}
	for _, c := range []struct {
		accelerator string
		devices     int
		want        string
	}{
		{"", 0, ""}, {"cpu", 2, ""}, {"cpu acme", 1, ""},
		{"h100", 2, `--accelerator "h100": this machine has CPU Acme 2.0GHz, 1 thread; --emit writes`},
		{"cpu", 3, "--devices 3: this machine has 2 x CPU Acme"},
	} {
		o := Options{Accelerator: c.accelerator, Devices: c.devices}
		err := o.check(m)
		if (err != nil) != (c.want != "") || err != nil && (!strings.Contains(err.Error(), c.want) || fail.Code(err) != fail.NoAnswer) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
		if err == nil && o.Devices != max(c.devices, 2*b2i(c.devices == 0)) {
			t.Errorf("%+v: %d devices", c, o.Devices)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestSmallSpace: a space too small to hold plans out is still calibrated, and named.
func TestSmallSpace(t *testing.T) {
	for text, want := range map[string]string{
		"shapes: [1]":                         "the space has only 1 plan: 0 held out, 1 to fit; --likely proposes other plans",
		"shapes: [1], micro_batch: [1, 2, 4]": "the space has only 3 plans: 1 held out, 2 to fit; --likely proposes other plans",
	} {
		file := filepath.Join(t.TempDir(), "small.yaml")
		if err := writeFile(file, []byte("name: small\nmodels: [gpt2-xl]\nspace: {"+text+"}\n")); err != nil {
			t.Fatal(err)
		}
		db, reg := querytest.Open(t)
		o := options()
		o.Model = file
		s, rows := measureAt(t, newSite(), o, db)
		r, err := s.report(t.Context(), rows, reg)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := r.Result().Write(&out, "table"); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(r.Warnings, want) || !strings.Contains(out.String(), "Warning: "+want) {
			t.Errorf("%s: warnings %q, want %q", text, r.Warnings, want)
		}
		if known := !strings.Contains(out.String(), "The error is not known"); known != (len(r.Plans) > 0) {
			t.Errorf("%s: %s", text, out.String())
		}
	}
}

var errSink = errors.New("disk full")

type fullSink struct{}

func (fullSink) Put(context.Context, ...spec.Measurement) error { return errSink }

// TestSinkFails: a result that cannot be stored ends the calibration.
func TestSinkFails(t *testing.T) {
	db, _ := querytest.Open(t)
	s := openAt(t, newSite(), options(), db)
	if _, err := s.measure(t.Context(), fullSink{}, io.Discard); !errors.Is(err, errSink) {
		t.Errorf("%v", err)
	}
}
