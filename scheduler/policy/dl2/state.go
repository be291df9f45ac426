package dl2

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// View is one decision: which job gets one more.
type View struct {
	State   []float32 // see encode
	Allowed []bool    // by action; that which ends the slot, the last, always is
	Seats   []Seat    // the first columns; the others are empty
	Void    int       // the action that ends the slot
}

// Seat is a column of the state: a job and what it was given in this slot.
type Seat struct {
	Job              *scheduler.JobState
	Workers, Servers int
	Next             int // workers that it would have with the next action for workers, 0 = there is none

	kind         int     // of Types
	least        float64 // believed seconds of a step on the least it can have
	sec          float64 // and on what it has, 0 = nothing
	gains        [3]float64
	share        float64 // of the cluster, by what it takes the largest share of
	heldW, heldS int
	column       dl2Column
}

// Worth returns by how much more of its work the job is believed to do in a second
// with one more of a kind, as a share of it.
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

// stateInputs are those of a column beside its type: slots since it was submitted,
// slots left, dominant share, workers and parameter servers, and workers and
// parameter servers that it held until now. (DL2, section 4.1, has the first five;
// there is no going back from what is held for free where starts cost.)
const stateInputs = 7

// Inputs are squeezed into about 0 to 1: counts of slots as ln(1+n)/longLog, those of
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
//	age, left  slots since it was submitted, and to go on the least it can have
//	share      of the cluster it was given
//	workers, servers      it was given in this slot, and holds since before
//	with Speeds: slots to go on what it was given, and of each action for it by
//	           what factor the next makes it faster, as a logarithm
//	with Speeds and Servers: of each action whether it is allowed; without Servers
//	           one that is not makes nothing faster
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
