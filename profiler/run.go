package profiler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Options are the inputs of a run besides its campaign.
type Options struct {
	Machine Machine
	Runner  Runner
	Sink    Sink
	Family  perfmodel.Family
	// Label distinguishes runs of one campaign, "" = "1". If the store has rows with this label, the run
	// continues.
	Label string
	// Rows are the stored measurements of this campaign's source, of any run. Points with rows of this Label
	// are done; other rows with a key of the space are used in fits if Reuse is set.
	Rows  []spec.Measurement
	Reuse bool
	// For are the plans that the adaptive order should predict best, of every model; nil = all points alike.
	For []Wanted
	// Only, if set, limits the run to the points for which it returns true.
	Only func(c spec.Config) bool
	// Again measures the points once in this session, also those that earlier sessions of the run measured.
	Again bool
	// Parallel is the number of points that are measured at the same time, on nodes of a cluster; 0 and 1 = one after the
	// other. Above 1 or with a Resumer, Run calls the Runner from several goroutines and writes no Journal, since a point
	// cannot crash this process.
	Parallel int
	Seed     uint64
	// Progress, if set, is called before and after every point, from one goroutine.
	Progress func(Event)
	Now      func() time.Time // nil = time.Now
}

// Event reports the progress of a run.
type Event struct {
	State State
	// Next is the point about to be measured; nil after a measurement.
	Next *Step
	// Last is the measurement just stored, nil before the first.
	Last *spec.Measurement
}

// Step is a point with the reason for choosing it.
type Step struct {
	Point Point
	// Why is the reason: "mean interval of llama7 from ±38 % to about ±21 %; ±55 % here".
	Why string
	// Gain is the expected decrease of the mean half width of the model's intervals, in log step time; 0 if the
	// order is not adaptive.
	Gain float64
	// HalfWidth is the half width of the present 90 % interval of ln T, 0 = none yet.
	HalfWidth float64
	// Seconds is the expected time that the point holds its devices, 0 = unknown.
	Seconds float64
}

// State is the progress of a run.
type State struct {
	Campaign, Label string
	Points          int // number of points of the space
	Done            int // number of points measured in this run; one that was measured again counts once
	ByOutcome       map[spec.Outcome]int
	Skipped         int // len(Skips)
	// Skips are the points that are not tried because a smaller one ran out of memory or time. The slice is
	// shared and must not be changed.
	Skips     []Rejected
	DeviceSec float64 // device-seconds held so far
	WallSec   float64 // seconds of all sessions of this run
	// Models summarises each model.
	Models []ModelState
	// ETASec is the expected time to the end of the budget, 0 = unknown.
	ETASec float64
	// Stopped is why the run ended, "" while it continues.
	Stopped string
}

// ModelState is the progress for one model of the space.
type ModelState struct {
	Key       spec.Key
	Points    int
	Done      int
	HalfWidth float64 // 90th percentile over its points of the half width of the 90 % interval of ln T; 0 = no fit yet
	Warning   string  // why there is no fit or no gain
}

// Run measures points of c until its budget is spent, its intervals are as narrow as wanted, or no point is
// left, and at the end once more those that Retryable reports. Each measurement is in the Sink before the next point begins. A killed run continues if Run is called
// again with the rows it stored; stored points are not measured again, unless Options.Again is set. If the Sink is
// a Journal, a point at which several sessions in a row are killed counts as failed (see maxAttempts).
//
// If the first points of a session all fail for one reason, and no point of the run had another outcome, the
// run stops early with an error that wraps ErrSetup. Simulated runs do not stop early.
//
// The State is valid even with an error. If ctx ends, Stopped is Interrupted and the error wraps that of ctx.
// An ErrSetup of the Runner or an error of the Sink also stops the run.
func Run(ctx context.Context, c Campaign, o Options) (State, error) {
	switch {
	case o.Runner == nil:
		return State{}, errors.New("profiler: no runner")
	case o.Sink == nil:
		return State{}, errors.New("profiler: no sink for the measurements")
	}
	r, err := newRun(ctx, c, o)
	if err != nil {
		return State{}, err
	}
	session := r.session
	if r.onCluster() {
		session = r.concurrent
	}
	s, err := session(ctx)
	if closer, ok := o.Runner.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	return s, errors.Join(err, r.finish())
}

// session measures points until the run stops.
func (r *run) session(ctx context.Context) (State, error) {
	for {
		step, ok, err := r.next(ctx)
		if err != nil {
			return r.stop(ctx, err)
		}
		if !ok {
			return r.state(), nil
		}
		r.report(Event{Next: &step})
		m, err := r.measure(ctx, step)
		if err != nil {
			return r.stop(ctx, err)
		}
		r.add(m)
		if err := r.refit(ctx); err != nil {
			return r.stop(ctx, err)
		}
		r.report(Event{Last: &m})
		if err := r.checkEarlyFailures(); err != nil {
			return r.stop(ctx, err)
		}
	}
}

// report calls Options.Progress.
func (r *run) report(e Event) {
	if r.o.Progress != nil {
		e.State = r.state()
		r.o.Progress(e)
	}
}

// stop ends a run after an error.
func (r *run) stop(ctx context.Context, err error) (State, error) {
	if ctx.Err() != nil {
		r.stopped = Interrupted
		return r.state(), fmt.Errorf("profiler: campaign %s, run %s: interrupted after %d points: %w",
			r.c.Name, r.label, r.measured(), context.Cause(ctx))
	}
	r.stopped = "error"
	return r.state(), err
}

// Interrupted is State.Stopped of a run after its context ended.
const Interrupted = "interrupted"

// measure runs a point and stores the result. On an error nothing is stored.
func (r *run) measure(ctx context.Context, step Step) (spec.Measurement, error) {
	number, c := r.number+1, step.Point.Config
	if err := ctx.Err(); err != nil {
		return spec.Measurement{}, err
	}
	began := r.now()
	m, err := r.attempt(ctx, c)
	held := r.now().Sub(began).Seconds()
	r.inRunner += held
	if err != nil {
		return m, r.pointError(number, c, err)
	}
	m.At = began
	return r.store(ctx, step, m, number, held)
}

func (r *run) pointError(number int, c spec.Config, err error) error {
	return fmt.Errorf("profiler: campaign %s, run %s: point %d (%s, %s): %w", r.c.Name, r.label, number, c.Key(), c.Plan, err)
}

// store completes the measurement of a point that held its devices for held seconds, and stores it.
func (r *run) store(ctx context.Context, step Step, m spec.Measurement, number int, held float64) (spec.Measurement, error) {
	m.Config, m.Source = step.Point.Config, r.c.Source()
	m.Origin = fmt.Sprintf("%s#%s/%d", r.c.Name, r.label, number)
	m = sanitize(m)
	m.Env = r.env(m.Env, number, step.Why, held)
	r.predicted(m.Env, &step)
	// The result is stored even if ctx has ended since.
	if err := r.o.Sink.Put(context.WithoutCancel(ctx), m); err != nil {
		return m, fmt.Errorf("profiler: campaign %s, run %s: storing point %d: %w; the %d points before it are stored, run again to continue",
			r.c.Name, r.label, number, err, len(r.rows))
	}
	return m, nil
}

// sanitize returns m without values that a store would reject, or a failed measurement if m is invalid.
func sanitize(m spec.Measurement) spec.Measurement {
	m.Reason, m.Doubt = validUTF8(m.Reason), validUTF8(m.Doubt)
	m.PhaseSec = finitePhases(m.PhaseSec)
	err := m.Validate()
	if err == nil {
		return m
	}
	m.Outcome, m.Reason = spec.Failed, "the runner's result is not a valid measurement: "+unprefixed(err)
	m.StepSec, m.PhaseSec, m.PeakBytes = nil, nil, 0
	return m
}

// finitePhases returns the phases with a finite time and a valid name.
func finitePhases(phases map[string]float64) map[string]float64 {
	phases = maps.Clone(phases)
	maps.DeleteFunc(phases, func(name string, sec float64) bool {
		return math.IsNaN(sec) || math.IsInf(sec, 0) || !utf8.ValidString(name)
	})
	return phases
}

// validUTF8 returns s with U+FFFD for invalid bytes, such as part of a letter in a truncated name.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// env returns the Env of a point: entries of the machine, the runner and the campaign.
func (r *run) env(env map[string]string, number int, why string, held float64) map[string]string {
	out := map[string]string{}
	for _, facts := range []map[string]string{r.o.Machine.Env, env} {
		for k, v := range facts {
			out[validUTF8(k)] = validUTF8(v)
		}
	}
	out[EnvCampaign], out[EnvRun], out[EnvPoint], out[EnvWhy] = r.c.Name, r.label, strconv.Itoa(number), why
	if w, err := strconv.ParseFloat(out[EnvWall], 64); err != nil || !(w >= 0) || math.IsInf(w, 0) {
		out[EnvWall] = strconv.FormatFloat(held, 'g', -1, 64)
	}
	return out
}

// SourcePrefix is the start of the Source of every campaign's measurements.
const SourcePrefix = "campaign/"

// Source returns the Source of measurements taken by c: "campaign/NAME".
func (c Campaign) Source() string { return SourcePrefix + c.Name }
