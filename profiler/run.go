package profiler

import (
	"context"
	"errors"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Options are what a run of a campaign needs from outside.
type Options struct {
	Machine Machine
	Runner  Runner
	Sink    Sink
	Family  perfmodel.Family
	// Label tells runs of one campaign apart, "" = "1". A run whose label has
	// rows in the store goes on where it was.
	Label string
	// Rows are the stored measurements of this campaign's source, of any run:
	// those of this Label are done; those of others, and anything else that
	// has a key of the space, are fitted on if Reuse is set.
	Rows  []spec.Measurement
	Reuse bool
	Seed  uint64
	// Progress, if set, is called before and after every point, from one goroutine.
	Progress func(Event)
	Now      func() time.Time // nil = time.Now
}

// Event is one thing that happened in a run.
type Event struct {
	State State
	// Next is the point about to be measured, nil after one.
	Next *Step
	// Last is the measurement that was just stored, nil before the first.
	Last *spec.Measurement
}

// Step is a point with the reason for it.
type Step struct {
	Point Point
	// Why says what is expected of it: "widest interval of llama7 (+-38 %)".
	Why string
	// Gain is the expected fall of the mean half width of the model's
	// intervals, in log step time; 0 when the order is not adaptive.
	Gain float64
	// HalfWidth is the half width of the present 90 % interval of ln T, 0 =
	// none yet.
	HalfWidth float64
	// Seconds is how long the point is expected to hold its devices, 0 =
	// nothing is known yet.
	Seconds float64
}

// State is how far a run is.
type State struct {
	Campaign, Label string
	Points          int // of the space
	Done            int // measured in this run
	ByOutcome       map[spec.Outcome]int
	Skipped         int     // will not be measured: see Skips
	DeviceSec       float64 // held so far
	WallSec         float64 // of all sessions of this run
	// Models says how well each model is known.
	Models []ModelState
	// ETASec is the expected time to the end of the budget, 0 = unknown.
	ETASec float64
	// Stopped says why the run ended, "" while it goes on.
	Stopped string
}

// ModelState is how well one model of the space is known.
type ModelState struct {
	Key       spec.Key
	Points    int
	Done      int
	HalfWidth float64 // 90th percentile over its points of the half width of the 90 % interval of ln T; 0 = no fit yet
	Warning   string  // why there is no fit
}

// Run measures points of c until its budget is spent, its intervals are as
// wanted or nothing is left. Each measurement is in the Sink before the next
// point begins. A run that was killed goes on when called again with the rows
// it stored: no acknowledged point is measured again.
func Run(ctx context.Context, c Campaign, o Options) (State, error) {
	return State{}, errors.ErrUnsupported
}

// Explain returns how far the run is and the points it would measure next, in
// order, at most n, without measuring any: as if each were measured as
// predicted.
func Explain(ctx context.Context, c Campaign, o Options, n int) (State, []Step, error) {
	return State{}, nil, errors.ErrUnsupported
}

// Points returns the points of c on m, in canonical order, and the combinations
// that cannot be run, each with the reason.
func (c Campaign) Points(m Machine) ([]Point, []Rejected, error) {
	return nil, nil, errors.ErrUnsupported
}

// ReadCampaign reads a campaign file. file is its name for messages, which carry
// line and column. model looks a name of the catalog up.
func ReadCampaign(file string, text []byte, model func(name string) (spec.Model, error)) (Campaign, error) {
	return Campaign{}, errors.ErrUnsupported
}

// Source is the Source of measurements taken by c: "campaign/NAME".
func (c Campaign) Source() string { return "campaign/" + c.Name }
