package profiler

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// offLab is a Runner that takes exp(off(number of runs, c)) times the step time by law, which lawful predicts.
type offLab struct {
	*lab
	off func(run int, c spec.Config) float64
}

func (l offLab) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	f := math.Exp(l.off(l.runs, c))
	m, err := l.lab.Run(ctx, c)
	for i := range m.StepSec {
		m.StepSec[i] *= f
	}
	return m, err
}

// halfOf is the half width of the scripted family: wide at even micro-batches.
func halfOf(c spec.Config) float64 {
	if c.Plan.MicroBatch%2 == 0 {
		return 0.5
	}
	return 0.02
}

// evidenceCampaign has 60 points; measured by gain, larger micro-batches are first.
func evidenceCampaign() Campaign {
	s := Space{AccumSteps: []int{1, 2, 4, 8}}
	for mb := range 15 {
		s.MicroBatch = append(s.MicroBatch, mb+1)
	}
	return Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: s}
}

// measuredWith runs the campaign to a number of points, in sessions of at most each points, with errors by off.
func measuredWith(t *testing.T, off func(run int, c spec.Config) float64, points, each int) []spec.Measurement {
	t.Helper()
	var sink memorySink
	o, l := options(t, &sink)
	o.Runner = offLab{l, off}
	f := &scripted{gain: func(_ []spec.Measurement, c spec.Config) perfmodel.Gain {
		return perfmodel.Gain{HalfWidth: halfOf(c), Fall: 0.001 * float64(c.Plan.MicroBatch)}
	}}
	o.Family = f.family()
	c := evidenceCampaign()
	for n := each; len(sink.rows) < points; n += each {
		c.Budget.Points = min(n, points)
		o.Rows = slices.Clone(sink.rows)
		mustRun(t, c, o)
	}
	return sink.rows
}

// filling returns the numbers of the points that were chosen by distance.
func filling(rows []spec.Measurement) (out []int) {
	for i := range rows {
		if strings.HasPrefix(rows[i].Env[EnvWhy], "intervals did not predict the errors of ") {
			out = append(out, pointNumber(rows[i]))
		}
	}
	return out
}

// sign alternates.
func sign(run int) float64 { return 1 - 2*float64(run%2) }

// asPromised are errors in proportion to the half widths, ten times as large.
func asPromised(run int, c spec.Config) float64 { return sign(run) * halfOf(c) * 10 / 1.6 }

// alike are errors that do not depend on the half widths.
func alike(run int, _ spec.Config) float64 { return sign(run) * 0.2 }

func TestMisleadingIntervalsFillSpace(t *testing.T) {
	rows := measuredWith(t, alike, 20, 20)
	got := filling(rows)
	// The first point has no fit before it, so the ninth is the last of eight errors: four at half width 0.02 and four at
	// 0.5 have the Bayes factor (0.02·0.5)⁴·((0.02⁻² + 0.5⁻²)/2)⁴ = 24600.
	if len(got) != 11 || got[0] != 10 || got[10] != 20 {
		t.Fatalf("points %v chosen by distance, want 10 to 20", got)
	}
	if why := rows[9].Env[EnvWhy]; !strings.HasSuffix(why, "of 8 points (Bayes factor 2.46e+04): farthest from the measured points") {
		t.Errorf("reason %q", why)
	}
	points, _, err := evidenceCampaign().Points(cpuMachine(2))
	if err != nil {
		t.Fatal(err)
	}
	configs := make([]spec.Config, len(points))
	for i, p := range points {
		configs[i] = p.Config
	}
	space := spacefill.NewSpace(configs)
	for i := range rows {
		if i >= 9 {
			at, most := slices.Index(configs, rows[i].Config), slices.Max(space.Nearest)
			if space.Nearest[at] != most {
				t.Errorf("point %d is %g from those before, another %g", i+1, space.Nearest[at], most)
			}
		}
		space.Measure(&rows[i].Config)
	}
}

func TestRightIntervalsChooseByGain(t *testing.T) {
	rows := measuredWith(t, asPromised, 30, 30)
	if got := filling(rows); len(got) > 0 {
		t.Errorf("points %v chosen by distance, want none: relative widths are right", got)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i].Config.Plan.MicroBatch > rows[i-1].Config.Plan.MicroBatch {
			t.Errorf("point %d has a smaller gain than the one after it", i)
		}
	}
}

// TestEvidenceTurns: once the intervals predict the errors again, points are chosen by gain.
func TestEvidenceTurns(t *testing.T) {
	rows := measuredWith(t, func(run int, c spec.Config) float64 {
		if run < 12 {
			return alike(run, c)
		}
		return asPromised(run, c)
	}, 40, 40)
	got := filling(rows)
	if len(got) == 0 || got[0] != 10 || got[len(got)-1] >= 40 || len(got) != got[len(got)-1]-9 {
		t.Errorf("points %v chosen by distance, want some from 10 on, then none", got)
	}
}

// TestEvidenceSurvivesResume: a run in many sessions has the same order and reasons, and rows in doubt are no evidence.
func TestEvidenceSurvivesResume(t *testing.T) {
	once := measuredWith(t, alike, 24, 24)
	parts := measuredWith(t, alike, 24, 5)
	for i := range once {
		a, b := &once[i], &parts[i]
		if a.Config != b.Config || a.Env[EnvWhy] != b.Env[EnvWhy] || a.Env[EnvPredicted] != b.Env[EnvPredicted] || a.Env[EnvPredictedHalf] != b.Env[EnvPredictedHalf] {
			t.Errorf("point %d: %s, %q in one session; %s, %q in several", i+1, a.Config.Plan, a.Env[EnvWhy], b.Config.Plan, b.Env[EnvWhy])
		}
	}
	if once[0].Env[EnvPredicted] != "" || once[1].Env[EnvPredicted] == "" {
		t.Errorf("predictions %q, %q; want none before the first fit", once[0].Env[EnvPredicted], once[1].Env[EnvPredicted])
	}
	o, _ := options(t, &memorySink{})
	o.Family = (&scripted{gain: func(_ []spec.Measurement, c spec.Config) perfmodel.Gain {
		return perfmodel.Gain{HalfWidth: halfOf(c), Fall: 0.001}
	}}).family()
	o.Rows = slices.Clone(once)
	if _, steps := explained(t, evidenceCampaign(), o, 12); len(steps) != 12 || !strings.HasPrefix(steps[11].Why, "intervals did not predict") {
		t.Errorf("%d steps, %+v; want 12 chosen by distance: assumed measurements are no evidence", len(steps), steps)
	}
	for i := range o.Rows {
		o.Rows[i] = o.Rows[i].Quarantine("other driver")
	}
	if _, steps := explained(t, evidenceCampaign(), o, 1); !strings.HasPrefix(steps[0].Why, "mean interval of a") {
		t.Errorf("reason %q, want the gain: rows in doubt are no evidence", steps[0].Why)
	}
}
