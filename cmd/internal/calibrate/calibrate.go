package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

// session is a calibration that is ready to measure.
type session struct {
	*campaign.Session
	o    Options
	read func(store.Filter) ([]spec.Measurement, error) // of the store; nil = there is none
}

// measured has the points of a calibration that were measured, with any outcome.
type measured struct {
	HeldOut []spec.Measurement // drawn at random
	Chosen  []spec.Measurement // by their expected gain
	WallSec float64            // of all sessions
	Stopped string             // why the last session ended
}

// all returns all rows.
func (r *measured) all() []spec.Measurement { return slices.Concat(r.HeldOut, r.Chosen) }

// heldOutLabel is the label of the run that measures the points held out.
func heldOutLabel(label string) string { return label + ".held-out" }

// turns is the number of times that a calibration goes from points held out to chosen ones. A machine may become slower
// or faster meanwhile; if all points held out came first, all errors would have the same sign.
const turns = 4

// until returns the budget of the first turns.
func (s *session) until(turn int) time.Duration { return s.o.Budget * time.Duration(turn) / turns }

// measure measures points until the budget is spent and stores each in sink before the next begins. A third of
// the budget is for points held out; the run that chooses the others knows neither them nor their step times.
// With the rows of an earlier session it continues. log shows the progress.
func (s *session) measure(ctx context.Context, sink profiler.Sink, log io.Writer) (*measured, error) {
	out := &measured{HeldOut: s.stored(heldOutLabel(s.o.Label)), Chosen: s.stored(s.o.Label)}
	held := s.heldOut(out)
	o := s.Profiler
	o.Sink = sink
	camp, chosen := s.Campaign, o
	camp.Choose = profiler.Adaptive
	chosen.Only = func(c spec.Config) bool { return s.inRange(c) && !held[identity(c)] }
	for turn := 1; turn <= turns; turn++ {
		wall, err := s.measureHeldOut(ctx, o, turn, held, out, log)
		if err != nil {
			return out, err
		}
		camp.Budget = wallBudget(s.until(turn) - wall)
		state, err := s.run(ctx, camp, chosen, fmt.Sprintf("turn %d of %d, chosen", turn, turns), &out.Chosen, log)
		out.WallSec, out.Stopped = wall.Seconds()+state.WallSec, state.Stopped
		if err != nil {
			return out, err
		}
	}
	return out, s.verdict(out)
}

// stored returns the stored rows of a run of the campaign.
func (s *session) stored(label string) (rows []spec.Measurement) {
	for _, m := range s.Profiler.Rows {
		if m.Source == s.Campaign.Source() && m.Env[profiler.EnvRun] == label {
			rows = append(rows, m)
		}
	}
	return rows
}

// heldOut returns the points to hold out. A point that an earlier session measured stays what it was, also if
// the space has changed.
func (s *session) heldOut(was *measured) map[profiler.Identity]bool {
	held := draw(s.Points, s.o.Seed)
	for _, m := range was.HeldOut {
		held[identity(m.Config)] = true
	}
	for _, m := range was.Chosen {
		delete(held, identity(m.Config))
	}
	return held
}

// measureHeldOut measures points held out with a third of the budget until the end of a turn; in the last turn with half
// of it if they are too few otherwise. It returns the time spent on them in all turns.
func (s *session) measureHeldOut(ctx context.Context, o profiler.Options, turn int, held map[profiler.Identity]bool, out *measured, log io.Writer) (time.Duration, error) {
	if len(held) == 0 {
		return 0, nil
	}
	camp := s.Campaign
	camp.Choose = profiler.Random
	o.Label, o.Family = heldOutLabel(s.o.Label), perfmodel.Family{}
	o.Only = func(c spec.Config) bool { return s.inRange(c) && held[identity(c)] }
	stage := fmt.Sprintf("turn %d of %d, held out", turn, turns)
	camp.Budget = wallBudget(s.until(turn) / 3)
	state, err := s.run(ctx, camp, o, stage, &out.HeldOut, log)
	if few := len(out.HeldOut) < min(leastHeldOut, len(held)); err == nil && turn == turns && few {
		camp.Budget = wallBudget(s.until(turn) / 2)
		camp.Budget.Points = leastHeldOut
		state, err = s.run(ctx, camp, o, stage, &out.HeldOut, log)
	}
	return seconds(state.WallSec), err
}

// wallBudget limits a run to a time. Without any it measures nothing, where a zero Budget means no limit.
func wallBudget(d time.Duration) profiler.Budget { return profiler.Budget{Wall: max(d, 1)} }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// inRange reports whether c runs on the requested devices.
func (s *session) inRange(c spec.Config) bool { return c.Plan.Devices() <= s.o.Devices }

// run runs camp and adds the rows that it measures to rows. stage says in the progress what is measured.
func (s *session) run(ctx context.Context, camp profiler.Campaign, o profiler.Options, stage string, rows *[]spec.Measurement, log io.Writer) (profiler.State, error) {
	o.Rows = *rows
	shown := camp
	shown.Name += ", " + stage
	show := campaign.NewDisplay(log, shown)
	o.Progress = func(e profiler.Event) {
		if e.Last != nil {
			*rows = append(*rows, *e.Last)
		}
		show.Event(e)
	}
	state, err := profiler.Run(ctx, camp, o)
	show.Finish()
	if err != nil && state.Stopped == profiler.Interrupted {
		return state, fmt.Errorf("calibrate: interrupted; the points measured are stored, the same command goes on")
	}
	return state, campaign.SetupError(err)
}

// verdict is the error of a calibration without a row to fit.
func (s *session) verdict(r *measured) error {
	all := r.all()
	switch {
	case slices.ContainsFunc(r.Chosen, perfmodel.Usable):
		return nil
	case len(r.Chosen) == 0:
		return fail.NoAnswerf("calibrate: --budget %s is too small to measure one plan to fit (%s)", s.o.Budget, r.Stopped)
	case slices.ContainsFunc(r.Chosen, func(m spec.Measurement) bool { return m.Outcome == spec.OK }):
		return fail.NoAnswerf("calibrate: all %s were disturbed (%s); measure again with nothing else running, under another --label",
			spec.Count(len(r.Chosen), "measurement"), r.Chosen[len(r.Chosen)-1].DoubtReason())
	}
	return errors.New("calibrate: none of the plans ran; the last: " + campaign.PointResult(all[len(all)-1]))
}

// intent describes in a line what is measured, where and for how long.
func (s *session) intent() string {
	text := fmt.Sprintf("%s: up to %s on %s, %d of them held out; budget %s", s.Campaign.Name, spec.Count(len(s.Points), "plan"), s.Setup,
		heldOutCount(len(s.Points)), campaign.Duration(s.o.Budget.Seconds()))
	if n := len(s.stored(s.o.Label)) + len(s.stored(heldOutLabel(s.o.Label))); n > 0 {
		text += fmt.Sprintf("; %d done", n)
	}
	return text
}
