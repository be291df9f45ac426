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
	Repeats []spec.Measurement // of a chosen one, the reference
	WallSec float64            // of all sessions
	Stopped string             // why the last session ended
}

// all returns all rows.
func (r *measured) all() []spec.Measurement { return slices.Concat(r.HeldOut, r.Chosen, r.Repeats) }

// fitted returns the rows that are fitted for the score.
func (r *measured) fitted() []spec.Measurement { return slices.Concat(r.Chosen, r.Repeats) }

// heldOutLabel is the label of the run that measures the points held out.
func heldOutLabel(label string) string { return label + ".held-out" }

// turns is the number of times that a calibration goes from points held out to chosen ones. A machine may become slower
// or faster meanwhile; if all points held out came first, all errors would have the same sign.
const turns = 4

// measure measures points until the budget is spent and stores each in sink before the next begins. A third of
// the budget is for points held out; the run that chooses the others knows neither them nor their step times.
// With the rows of an earlier session it continues. log shows the progress.
func (s *session) measure(ctx context.Context, sink profiler.Sink, log io.Writer) (*measured, error) {
	out := &measured{HeldOut: s.stored(heldOutLabel(s.o.Label)), Chosen: s.stored(s.o.Label), Repeats: s.stored(repeatLabel(s.o.Label))}
	w := &work{session: s, measured: out, sink: sink, log: log, held: s.heldOut(out)}
	for turn := range turns {
		if err := w.turn(ctx, turn); err != nil {
			return out, err
		}
	}
	return out, s.verdict(out)
}

// work is a calibration that measures.
type work struct {
	*session
	*measured
	sink    profiler.Sink
	log     io.Writer
	held    map[profiler.Identity]bool // points to hold out
	stage   string                     // for the progress
	between time.Duration              // of this session, between points
}

// spent returns the time of the points of all sessions, and that between the points of this one.
func (w *work) spent() time.Duration { return heldTime(w.all()) + w.between }

// turn measures points held out, chosen ones, and the reference again if it is due.
func (w *work) turn(ctx context.Context, turn int) error {
	w.stage = fmt.Sprintf("turn %d of %d", turn+1, turns)
	budget := w.budget(turn)
	err := w.measureHeldOut(ctx, budget, turn == turns-1)
	if err == nil {
		err = w.measureChosen(ctx, budget-w.repeatTime(turn))
	}
	if err == nil {
		err = w.repeat(ctx, turn)
	}
	w.WallSec = w.spent().Seconds()
	return err
}

// budget returns the time of all turns up to one.
func (w *work) budget(turn int) time.Duration { return w.o.Budget * time.Duration(turn+1) / turns }

// heldTime returns the time that rows held the devices.
func heldTime(rows []spec.Measurement) time.Duration {
	sum := 0.0
	for _, m := range rows {
		sum += profiler.HeldSec(m)
	}
	return seconds(sum)
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

// measureHeldOut measures points held out with a third of a budget, or in the last turn with half of it if they are
// too few otherwise.
func (w *work) measureHeldOut(ctx context.Context, budget time.Duration, last bool) error {
	if len(w.held) == 0 {
		return nil
	}
	camp, o := w.Campaign, w.Profiler
	camp.Choose = profiler.Random
	o.Label, o.Family = heldOutLabel(w.o.Label), perfmodel.Family{}
	o.Only = func(c spec.Config) bool { return w.inRange(c) && w.held[identity(c)] }
	left := budget - w.spent() + heldTime(w.HeldOut)
	camp.Budget = wallBudget(min(budget/3, left))
	_, err := w.run(ctx, camp, o, "held out", &w.HeldOut)
	if few := len(w.HeldOut) < min(leastHeldOut, len(w.held)); err == nil && last && few {
		camp.Budget = wallBudget(min(budget/2, left))
		camp.Budget.Points = leastHeldOut
		_, err = w.run(ctx, camp, o, "held out", &w.HeldOut)
	}
	return err
}

// measureChosen measures the points of the highest expected gain until all points together took a time.
func (w *work) measureChosen(ctx context.Context, until time.Duration) error {
	camp, o := w.Campaign, w.Profiler
	camp.Choose = profiler.Adaptive
	o.Only = func(c spec.Config) bool { return w.inRange(c) && !w.held[identity(c)] }
	camp.Budget = wallBudget(until - w.spent() + heldTime(w.Chosen))
	state, err := w.run(ctx, camp, o, "chosen", &w.Chosen)
	w.Stopped = state.Stopped
	return err
}

// wallBudget limits a run to a time. Without any it measures nothing, where a zero Budget means no limit.
func wallBudget(d time.Duration) profiler.Budget { return profiler.Budget{Wall: max(d, 1)} }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// inRange reports whether the plan of c is for at most the requested devices.
func (s *session) inRange(c spec.Config) bool { return c.Plan.Devices() <= s.o.Devices }

// run runs camp and adds the rows that it measures to rows. kind is that of its points, for the progress.
func (w *work) run(ctx context.Context, camp profiler.Campaign, o profiler.Options, kind string, rows *[]spec.Measurement) (profiler.State, error) {
	o.Rows, o.Sink = *rows, w.sink
	shown := camp
	shown.Name += ", " + w.stage + ", " + kind
	show := campaign.NewDisplay(w.log, shown)
	o.Progress = func(e profiler.Event) {
		if e.Last != nil {
			*rows = append(*rows, *e.Last)
		}
		e.State.ETASec = max((w.o.Budget - w.spent()).Seconds(), 0) // of the calibration, not of the turn
		show.Event(e)
	}
	state, err := profiler.Run(ctx, camp, o)
	show.Finish()
	w.between += max(seconds(state.WallSec)-heldTime(*rows), 0)
	if err != nil && state.Stopped == profiler.Interrupted {
		return state, fmt.Errorf("calibrate: interrupted; the points measured are stored, the same command goes on")
	}
	return state, campaign.SetupError(err)
}

// verdict is the error of a calibration without a row to fit.
func (s *session) verdict(r *measured) error {
	all := r.all()
	switch {
	case slices.ContainsFunc(r.Chosen, perfmodel.UsableOrAlone):
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
	plans := wholePlans(s.Points)
	text := fmt.Sprintf("%s: up to %s on %s, %d of them held out; budget %s", s.Campaign.Name, spec.Count(len(plans), "plan"), s.Setup,
		heldOutCount(len(plans)), campaign.Duration(s.o.Budget.Seconds()))
	if n := aloneCount(s.Points); n > 0 {
		text += fmt.Sprintf("; plans for more than %s are measured one rank at a time (%s)", spec.Count(len(s.Machine.Devices), "device"), spec.Count(n, "rank"))
	}
	if n := len(s.stored(s.o.Label)) + len(s.stored(heldOutLabel(s.o.Label))) + len(s.stored(repeatLabel(s.o.Label))); n > 0 {
		text += fmt.Sprintf("; %d done", n)
	}
	return text
}
