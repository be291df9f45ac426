package remaining

import (
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// History is the service that jobs received, of jobs that ended and of those in the system, which will receive more
// (Kaplan and Meier, "Nonparametric estimation from incomplete observations", J. Am. Stat. Assoc. 53, 1958). The share of
// jobs that survive an octave is that of all jobs; with each like job that entered the octave that of like jobs counts
// more. The zero value knows no job.
type History struct {
	ended   map[kind]*counts
	present []*scheduler.JobState // in the system
	all     map[kind]*counts      // with present; nil = not counted yet
	curves  map[kind]*curve       // of all

	observed bool          // Observe was called
	at       time.Duration // when jobs were last added by it
}

// kind is what like jobs have in common. The zero kind is that of all jobs; without a model name it is that of all jobs
// on as many devices.
type kind struct {
	model   string
	devices int
}

// kinds returns the kinds of a job, the most general first.
func kinds(j *spec.Job) [3]kind {
	return [3]kind{{}, {devices: j.Devices}, {j.Model.Name, j.Devices}}
}

// counts are the jobs that entered and that ended in each octave.
type counts struct{ entered, ended [octaves]float64 }

// add counts a job that received some service. One that has not ended counts in the octaves that it survived.
func (c *counts) add(service float64, ended bool) {
	last := octave(max(service, unit))
	for k := range last {
		c.entered[k]++
	}
	if ended {
		c.entered[last]++
		c.ended[last]++
	}
}

// Observe adds the ended jobs of a snapshot, once per instant, and replaces the jobs in the system. They are counted when
// Cost is first called, so that decisions without it pay nothing.
func (h *History) Observe(s *scheduler.Snapshot) {
	if h.observed && s.Now <= h.at {
		h.present = s.Jobs()
		return
	}
	h.observed, h.at = true, s.Now
	h.add(s.Ended)
	h.replace(s.Jobs())
}

// add adds jobs that ended.
func (h *History) add(ended []scheduler.JobState) {
	if h.ended == nil {
		h.ended = map[kind]*counts{}
	}
	for i := range ended {
		add(h.ended, &ended[i], true)
	}
}

// replace replaces the jobs in the system.
func (h *History) replace(jobs []*scheduler.JobState) { h.present, h.all = jobs, nil }

// count sets all.
func (h *History) count() {
	h.all = make(map[kind]*counts, len(h.ended))
	for k, c := range h.ended {
		copied := *c
		h.all[k] = &copied
	}
	for _, j := range h.present {
		if j.Attained >= 2*unit {
			add(h.all, j, false)
		}
	}
	h.curves = map[kind]*curve{}
}

func add(to map[kind]*counts, j *scheduler.JobState, ended bool) {
	was := kind{model: "\x00"}
	for _, k := range kinds(j.Job) {
		if k == was { // the job has no model
			continue
		}
		if to[k] == nil {
			to[k] = &counts{}
		}
		to[k].add(j.Attained, ended)
		was = k
	}
}

// shrinkage is the number of jobs of a more general kind that count as like jobs.
const shrinkage = 10

// jeffreys is the number of jobs that the prior counts as: the mean of Jeffreys' prior of a share, Beta(1/2, 1/2).
const jeffreys = 1

// curve returns the curve of a kind of jobs, from that of the more general kind.
func (h *History) curve(k kind, general *curve, weight float64) *curve {
	if c := h.curves[k]; c != nil {
		return c
	}
	n := h.all[k]
	if n == nil {
		return general
	}
	c := new(curve)
	for i := range c {
		end := 1 - math.Exp2(-general[i])
		c[i] = -math.Log2(1 - (n.ended[i]+weight*end)/(n.entered[i]+weight))
	}
	h.curves[k] = c
	return c
}

// Cost returns the device-seconds that j, with a performance unknown and some attained service, costs per completion
// under the best quantum: the expected remaining service if no more is known. It is at least a minute of
// its devices, and without history the attained service.
func (h *History) Cost(j *spec.Job, attained float64) float64 {
	if h.all == nil {
		h.count()
	}
	c, weight := &prior, float64(jeffreys)
	for _, k := range kinds(j) {
		c, weight = h.curve(k, c, weight), shrinkage
	}
	return max(c.cost(attained), unit*float64(j.Devices))
}
