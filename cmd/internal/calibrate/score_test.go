package calibrate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// someRows returns rows of n plans of one site.
func someRows(t *testing.T, n int) []spec.Measurement {
	t.Helper()
	db, _ := querytest.Open(t)
	o := options()
	o.Budget = points(n + n/10) // with the repeats of one
	s := openAt(t, newSite(), o, db)
	rows, err := s.measure(t.Context(), db, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return rows.all()
}

func hybridFamily(t *testing.T) perfmodel.Family {
	t.Helper()
	fam, err := family.Lookup(family.Default)
	if err != nil {
		t.Fatal(err)
	}
	return fam
}

// TestScoreEach: each row is predicted by a fit that saw neither it nor a repeat of it.
func TestScoreEach(t *testing.T) {
	fam := hybridFamily(t)
	for _, n := range []int{6, maxFolds + 4} {
		rows := someRows(t, n)
		was, err := scoreEach(t.Context(), fam, append(rows, rows[0]), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(was) != n {
			t.Fatalf("%d scores of %d plans", len(was), n)
		}
		if before, after := accuracies(was); after.Mean > before.Mean/2 {
			t.Errorf("%d rows: mean error %g before, %g after", n, before.Mean, after.Mean)
		}
		changed := slices.Clone(rows)
		changed[0].StepSec = []float64{2 * rows[0].MedianStepSec()}
		now, err := scoreEach(t.Context(), fam, append(changed, changed[0]), 1)
		if err != nil {
			t.Fatal(err)
		}
		moved := 0
		for i := range was {
			if was[i].Plan == rows[0].Config.Plan.String() && now[i].MeasuredSec != was[i].MeasuredSec {
				if now[i].After.Sec != was[i].After.Sec {
					t.Errorf("%d rows: the prediction of %s moves with its own step time, from %g to %g", n, was[i].Plan, was[i].After.Sec, now[i].After.Sec)
				}
			} else if now[i].After.Sec != was[i].After.Sec {
				moved++
			}
		}
		if moved == 0 {
			t.Errorf("%d rows: no other prediction moved", n)
		}
	}
}

// TestAccuracy is a worked example. A row without a prediction before counts neither before nor after.
func TestAccuracy(t *testing.T) {
	at := func(sec, lo, hi float64) *StepSec { return &StepSec{sec, lo, hi, sec/2 - 1} } // measured: 2 s
	rows := []Scored{
		{MeasuredSec: 2, Before: at(3, 1, 4), After: at(2.2, 2.1, 2.3)},
		{MeasuredSec: 2, Before: at(1.8, 1.5, 1.9), After: at(2, 1, 4)},
		{MeasuredSec: 2, Before: at(4, 2, 8), After: at(1.6, 0, 0)},
		{MeasuredSec: 2, After: at(200, 0, 0)},
	}
	before, after := accuracies(rows)
	want := Accuracy{3, (0.5 + 0.1 + 1) / 3, 0.5, (math.Log(4) + math.Log(1.9/1.5) + math.Log(4)) / 6, 2.0 / 3}
	if diff := math.Abs(before.Mean-want.Mean) + math.Abs(before.Median-want.Median) + math.Abs(before.HalfWidth-want.HalfWidth) + math.Abs(before.Coverage-want.Coverage); diff > 1e-12 || before.Plans != 3 {
		t.Errorf("before %+v, want %+v", before, want)
	}
	if after.Plans != 3 || math.Abs(after.Mean-0.1) > 1e-12 || math.Abs(after.Median-0.1) > 1e-12 || math.Abs(after.Coverage-1.0/3) > 1e-12 {
		t.Errorf("after %+v", after)
	}
	if b, a := accuracies(rows[3:]); b != (Accuracy{}) || a != (Accuracy{}) {
		t.Errorf("%+v %+v", b, a)
	}
}

// TestReasons: an error that was not halved is explained by what the rows show, and by nothing else.
func TestReasons(t *testing.T) {
	scored := func(noise float64, before float64, after ...float64) *Report {
		r := &Report{}
		for i, e := range after {
			r.Plans = append(r.Plans, Scored{brief: fmt.Sprint("plan ", i), Noise: noise, MeasuredSec: 1, Before: &StepSec{Error: before}, After: &StepSec{Error: e}})
		}
		r.Before, r.After = accuracies(r.Plans)
		return r
	}
	ok := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}}
	oom := spec.Measurement{Outcome: spec.OOM}
	for _, c := range []struct {
		name   string
		r      *Report
		rows   []spec.Measurement
		fitted int
		want   []string
	}{
		{"halved", scored(0.1, 0.4, 0.2, 0.2), []spec.Measurement{oom}, 1, nil},
		{"nothing scored", &Report{}, []spec.Measurement{oom}, 1, nil},
		{"noise", scored(0.2, 0.4, 0.3, 0.3), []spec.Measurement{ok}, 9, []string{"the measurements themselves are uncertain: their 95 % intervals are ±20.0 % (median)"}},
		{"little to gain", scored(0, 0.04, 0.03), []spec.Measurement{ok}, 9, []string{"the predictions were good before"}},
		{"disturbed", scored(0.01, 0.4, 0.3), []spec.Measurement{ok, oom}, 9, []string{"1 of 2 measurements failed or were disturbed, and are neither fitted nor scored"}},
		{"few rows", scored(0.01, 0.4, -0.3), []spec.Measurement{ok}, 1, []string{"only 1 row fitted: measure more"}},
		{"one plan", scored(0.01, 0.4, 0.1, -1, 0.1), []spec.Measurement{ok}, 9, []string{"one plan stands out: without plan 1 the mean error is 10.0 %, before 40.0 %"}},
		{"unknown", scored(0.01, 0.4, 0.3, 0.3, 0.3), []spec.Measurement{ok}, 9, []string{"no single cause shows in the rows"}},
	} {
		if got := c.r.reasons(c.rows, c.fitted, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	outlier := []perfmodel.Outlier{{Row: ok, Factor: 4}}
	if got := scored(0, 0.4, 0.3).reasons([]spec.Measurement{ok}, 9, outlier); len(got) != 1 || !strings.Contains(got[0], "a fitted row contradicts the others: ") || !strings.Contains(got[0], "4 times") {
		t.Errorf("outlier: %q", got)
	}
}

// TestDriftOfHeldOut: without a reference, plans held out show that the machine became slower or faster: relative to
// the fit, the later half of them took longer or shorter.
func TestDriftOfHeldOut(t *testing.T) {
	began := newSite().now
	report := func(ratio float64) *Report {
		r := &Report{}
		for i := range 10 {
			measured := 1 + 0.04*float64(i%3)
			if i >= 5 {
				measured *= ratio
			}
			at := began.Add(time.Duration(i) * time.Minute)
			r.Plans = append(r.Plans, Scored{MeasuredSec: measured, Before: &StepSec{Error: 1}, After: &StepSec{Sec: 1, Error: 1/measured - 1}, at: at})
		}
		r.Before, r.After = accuracies(r.Plans)
		return r
	}
	for ratio, want := range map[float64]string{1: "", 1.05: "", 1.5: "the machine became about 1.5 times slower meanwhile", 0.5: "the machine became about 2.0 times faster meanwhile"} {
		if got := report(ratio).drift(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("ratio %g: %q, want %q", ratio, got, want)
		}
	}
	r := report(1.5)
	r.Before = r.After
	if got := r.reasons(nil, 9, nil); !strings.HasPrefix(got[0], "the machine became about 1.5 times slower") {
		t.Errorf("reasons %q", got)
	}
	r.Reference = &Reference{Changed: true, Ratio: 3, Runs: []RefTime{{Sec: 1}, {Sec: 3}}}
	if got := strings.Join(r.reasons(nil, 9, nil), "; "); !strings.HasPrefix(got, "the machine was up to 3.0 times slower") || strings.Contains(got, "became") {
		t.Errorf("reasons %q, want the reference alone", got)
	}
}

// TestDraw: a third is held out, at least three of them where that leaves as many, and of all models alike.
func TestDraw(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 6: 3, 8: 3, 9: 3, 12: 4, 30: 10, 1000: 16} {
		if got := heldOutCount(n); got != want {
			t.Errorf("of %d points %d are held out, want %d", n, got, want)
		}
	}
	var space []profiler.Point
	for _, model := range []string{"a", "b"} {
		for mb := range 20 {
			space = append(space, profiler.Point{Config: spec.Config{Model: spec.Model{Name: model}, Plan: spec.Plan{MicroBatch: mb + 1}, Shape: spec.NewShape(1)}})
		}
	}
	count := func(of map[profiler.Identity]bool) (a, b int) {
		for _, p := range space {
			if of[identity(p.Config)] && p.Config.Model.Name == "a" {
				a++
			} else if of[identity(p.Config)] {
				b++
			}
		}
		return a, b
	}
	held, again, other := draw(space, 1), draw(space, 1), draw(space, 2)
	if a, b := count(held); a != 7 || b != 6 {
		t.Errorf("%d and %d points of two models are held out, want 7 and 6", a, b)
	}
	same := 0
	for id := range held {
		if !again[id] {
			t.Errorf("the same seed draws others")
		}
		if other[id] {
			same++
		}
	}
	if same == len(held) {
		t.Error("another seed draws the same points")
	}
	for i := range space {
		space[i].Config.Shape.CPUs = 8
	}
	if a, b := count(held); a != 7 || b != 6 {
		t.Errorf("with other CPUs %d and %d points are held out", a, b)
	}
}

// TestUsual: the wanted batch if there is one, else that of most configurations, the largest of several.
func TestUsual(t *testing.T) {
	var configs []spec.Config
	for _, b := range []int{8, 4, 8, 16, 4} {
		configs = append(configs, spec.Config{Plan: spec.Plan{MicroBatch: b}.Normal()})
	}
	for want, batch := range map[int]int{2: 8, 4: 4, 16: 16, 100: 8} {
		if got := usual(configs, want); got != batch {
			t.Errorf("wanted %d, got %d, want %d", want, got, batch)
		}
	}
	if got := usual(nil, 8); got != 0 {
		t.Errorf("%d, want 0", got)
	}
}
