package dl2

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// View is the input of one action.
type View struct {
	State   []float32 // see encode
	Allowed []bool    // by action; the void action, the last, always is
	Seats   []Seat    // the first columns; the others are empty
	Void    int       // the action that ends the slot
}

// Seat is a job in a column of the state, with its resources in this slot.
type Seat struct {
	Job              *scheduler.JobState
	Workers, Servers int
	Next             int // workers after the next action for workers, 0 = none

	kind         int     // of Types
	least        float64 // predicted seconds per step on its smallest size
	sec          float64 // and with its present resources, 0 = none
	gains        [3]float64
	share        float64 // dominant share of the cluster
	heldW, heldS int
	column       column
}

// Worth returns the predicted increase of the fraction of its work that the job completes
// per second with one more of a kind.
func (s *Seat) Worth(kind int) float64 {
	total := s.Job.Done + s.Job.Remaining
	if s.sec == 0 {
		return 1 / (total * s.least)
	}
	return math.Expm1(s.gains[kind]) / (total * s.sec)
}

// Chooser picks one of the allowed actions.
type Chooser interface {
	Choose(v *View) (action int, err error)
}

// stateInputs is the number of inputs of a column besides its type: slots since submission,
// remaining slots, dominant share, workers, parameter servers, and the workers and parameter
// servers it held before. DL2 (section 4.1) has the first five; the others matter because
// restarts cost.
const stateInputs = 7

// Inputs are scaled to about 0 to 1: counts of slots as ln(1+n)/longLog, those of
// workers and servers as ln(1+n)/wideLog, in place of batch normalisation.
const (
	longLog = 5
	wideLog = 4
)

func squeezed(n, scale float64) float32 { return float32(math.Log1p(max(n, 0)) / scale) }

// encode writes the state of v: column after column, then the share of the cluster that
// is free.
//
//	type       1 for the model of the job, 0 for the others
//	age, left  slots since submission, and remaining slots on its smallest size
//	share      dominant share
//	workers, servers  in this slot, and held before
//	with Speeds: remaining slots with its present resources, and for each action the
//	           logarithm of the speedup
//	with Speeds and Servers: for each action whether it is allowed; without Servers an
//	           action that is not allowed has speedup 1
func (v *View) encode(f *Form, now time.Duration, free float64) {
	clear(v.State)
	width, slot := f.column(), f.SlotSec
	for i := range v.Seats {
		s := &v.Seats[i]
		x := v.State[i*width:][:width]
		x[s.kind] = 1
		x = x[len(f.Types):]
		x[0] = squeezed((now-s.Job.Job.Submit).Seconds()/slot, longLog)
		x[1] = squeezed(s.Job.Remaining*s.least/slot, longLog)
		x[2] = float32(s.share)
		x[3], x[4] = squeezed(float64(s.Workers), wideLog), squeezed(float64(s.Servers), wideLog)
		x[5], x[6] = squeezed(float64(s.heldW), wideLog), squeezed(float64(s.heldS), wideLog)
		if !f.Speeds {
			continue
		}
		x = x[stateInputs:]
		x[0] = squeezed(s.Job.Remaining*s.sec/slot, longLog)
		for k := range f.kinds() {
			x[1+k] = float32(s.gains[k])
			if f.Servers && v.Allowed[i*f.kinds()+k] {
				x[1+f.kinds()+k] = 1
			}
		}
	}
	v.State[len(v.State)-1] = float32(free)
}
