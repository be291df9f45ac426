package policy

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// experience is how fast jobs were seen to run: what is believed of a way that
// jobs of a kind have run in is replaced by it, and of the other ways of the kind
// shifted by what all of them were off.
type experience struct {
	starts map[spec.JobID]start
	rates  map[experienced]float64
	biases map[kindOf]bias
}

// start is what a job had done when it was first seen with its grant.
type start struct {
	grant *scheduler.Grant
	done  float64 // steps
	at    time.Duration
}

type experienced struct {
	kindOf
	group int
	shape string
	plan  spec.Plan
}

// bias sums the logarithms of rate seen / rate believed over ways. Its mean is
// taken over one way more, of which nothing is off.
type bias struct {
	sum  float64
	ways int
}

// leastSeen is the least time over which a rate is taken.
const leastSeen = 10 * time.Second

func newExperience() *experience {
	return &experience{starts: map[spec.JobID]start{}, rates: map[experienced]float64{}, biases: map[kindOf]bias{}}
}

// see learns from a job that runs, or starts, in a way of its curve.
func (e *experience) see(now time.Duration, j *scheduler.JobState, way *option) {
	began, ok := e.starts[j.Job.ID]
	if !ok || began.grant != j.Grant {
		e.starts[j.Job.ID] = start{j.Grant, j.Done, now}
		return
	}
	from := max(began.at, j.Ready)
	if now < from+leastSeen {
		return
	}
	rate := (j.Done - began.done) / (now - from).Seconds()
	if !(rate > 0) {
		return
	}
	key := experienced{kind(j.Job), way.group, way.shape.Devices, way.plan}
	if _, known := e.rates[key]; !known {
		b := e.biases[key.kindOf]
		b.sum += math.Log(rate / way.rate)
		b.ways++
		e.biases[key.kindOf] = b
	}
	e.rates[key] = rate
}

// rate returns how fast j is believed to run in a way, after what was seen.
func (e *experience) rate(j *spec.Job, way *option) float64 {
	k := kind(j)
	if r, ok := e.rates[experienced{k, way.group, way.shape.Devices, way.plan}]; ok {
		return r
	}
	b := e.biases[k]
	return way.rate * math.Exp(b.sum/float64(b.ways+1))
}
