package rubick

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// move is a change of a running job that frees devices.
type move struct {
	t     *task
	to    *candidate.Config // nil = stop
	loss  float64           // seconds by which the job ends later
	freed float64           // devices, or CPUs in devices
}

// slope is the loss per freed device.
func (m move) slope() float64 { return m.loss / m.freed }

// devices returns the number of devices freed.
func (m move) devices() int {
	if m.to == nil {
		return m.t.now.Devices
	}
	return m.t.now.Devices - m.to.Devices
}

// mayChange reports whether running task t has a known configuration, has not been changed in this
// decision, and has restart budget left.
func (r *round) mayChange(t *task) bool {
	return t.now != nil && t.grant == t.Grant && t.mayRestart
}

// spare reports whether another restart of t, which runs, is within its budget.
func (r *round) spare(t *task) bool {
	run := (r.s.Now - t.FirstRun).Seconds() + t.left
	return float64(t.Restarts+1)*t.StartCost.Seconds() <= r.budget*run
}

// moves returns the moves of running jobs that could make room for t, flattest slope first.
// Moves that lose more than t gains are left out. The result is valid until the next call.
func (r *round) moves(t *task, gain float64) []move {
	ms := r.scratch[:0]
	for _, k := range r.running {
		if !r.mayChange(k) || k.now.Group != t.best.Group {
			continue
		}
		most := gain
		if guaranteeBinds(t, k) {
			most = math.Inf(1)
		}
		if !k.Job.Guaranteed {
			if loss := r.loss(t, k, nil); loss <= most {
				ms = append(ms, move{k, nil, loss, k.now.Load})
			}
		}
		for i := range k.options {
			o := &k.options[i]
			freed := r.freed(k, o)
			if o.Group != k.now.Group || !(freed > 0) {
				continue
			}
			if loss := r.loss(t, k, o); loss <= most {
				ms = append(ms, move{k, o, loss, freed})
			}
		}
	}
	slices.SortStableFunc(ms, func(a, b move) int { return cmp.Compare(a.slope(), b.slope()) })
	r.scratch = ms
	return ms
}

// freed returns the load that k frees if it runs with o: devices, or with equal devices its
// freed CPUs in devices. 0 if it would need more of either.
func (r *round) freed(k *task, o *candidate.Config) float64 {
	devices := k.now.Devices - o.Devices
	cpus := int64(k.now.Devices)*k.now.Host.MilliCPUs - int64(o.Devices)*o.Host.MilliCPUs
	switch {
	case devices < 0 || cpus < 0:
		return 0
	case devices > 0:
		return max(float64(devices), k.now.Load-o.Load)
	}
	g := &r.s.Cluster.Groups[o.Group]
	return float64(cpus) / float64(max(g.Host().MilliCPUs, 1)) * float64(g.Devices)
}

// guaranteeBinds reports whether t may take devices from k regardless of the loss.
func guaranteeBinds(t, k *task) bool { return t.Job.Guaranteed && !k.Job.Guaranteed }

// loss returns the delay of k in seconds if it makes room for t by running with o, or by
// stopping (nil). It either gets its devices back when t ends, at another start cost, or
// continues with o.
func (r *round) loss(t, k *task, o *candidate.Config) float64 {
	start, lent := k.StartCost.Seconds(), t.runTime(t.best)
	if o == nil {
		return start + lent
	}
	back := 2*start + lent*max(1-o.Rate/k.now.Rate, 0)
	return min(back, k.runTime(o)-k.left)
}

// feed starts t on devices freed by running jobs if t gains more than they lose together.
// The gain of t is the wait it avoids, in seconds. A guaranteed job may take devices from best-effort jobs
// regardless of their loss.
func (r *round) feed(t *task, gain float64) bool {
	chosen, ok := r.choose(t, gain)
	if !ok {
		return false
	}
	inv, grants := r.rearrange(t, chosen)
	r.free = inv
	for i, m := range chosen {
		r.give(m.t, grants[i], m.to)
	}
	r.give(t, grants[len(chosen)], t.best)
	r.explainFed(t, chosen, gain)
	return true
}

// explainFed adds the reasons of feed.
func (r *round) explainFed(t *task, chosen []move, gain float64) {
	if !r.s.Reasons {
		return
	}
	for _, m := range chosen {
		r.why(m.t, "slope %.3g s per device: %s for %s", m.slope(), m.what(), t.Job.ID)
	}
	if loss := total(chosen); loss <= gain {
		r.why(t, "slope %.3g > %.3g s per device: %s", gain/t.best.Load, loss/t.best.Load, names(chosen))
		return
	}
	r.why(t, "starts to keep its guarantee: %s", names(chosen))
}

// choose returns moves that make room for t: one per job, flattest first. If that is not enough a job may be moved
// again, to a configuration that frees more, and finally be stopped.
func (r *round) choose(t *task, gain float64) ([]move, bool) {
	all := r.moves(t, gain)
	for _, again := range []bool{false, true} {
		if chosen, ok := r.collect(t, gain, all, again); ok {
			return r.relax(t, chosen, all), true
		}
	}
	return nil, false
}

// collect returns the first moves of all that make room for t, the total loss being at most gain. again allows a later
// move of the same job to replace an earlier one.
func (r *round) collect(t *task, gain float64, all []move, again bool) ([]move, bool) {
	var chosen []move
	loss, room, at := 0.0, r.free.FreeIn(t.best.Group), map[*task]int{}
	for _, m := range all {
		i, moved := at[m.t]
		old := move{}
		if moved {
			old = chosen[i]
		}
		if moved && (!again || m.freed <= old.freed) || loss+m.loss-old.loss > gain && !guaranteeBinds(t, m.t) {
			continue
		}
		loss, room = loss+m.loss-old.loss, room+m.devices()
		if moved {
			room -= old.devices()
			chosen[i] = m
		} else {
			at[m.t] = len(chosen)
			chosen = append(chosen, m)
		}
		if room >= t.best.Devices && r.fits(t, chosen) {
			return chosen, true
		}
	}
	return nil, false
}

// relax drops unneeded moves, and replaces others by moves with less loss if that is enough.
func (r *round) relax(t *task, chosen, all []move) []move {
	for i := len(chosen) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(chosen), i, i+1); r.fits(t, fewer) {
			chosen = fewer
		}
	}
	for i := range chosen {
		for _, m := range all {
			if m.t != chosen[i].t || m.loss >= chosen[i].loss {
				continue
			}
			milder := slices.Clone(chosen)
			if milder[i] = m; r.fits(t, milder) {
				chosen = milder
			}
		}
	}
	return chosen
}

func (r *round) fits(t *task, moves []move) bool {
	inv, _ := r.rearrange(t, moves)
	return inv != nil
}

// rearrange places t and the moved jobs on the free and freed devices. It returns the free
// devices after that and the grants of the moves (nil for a stop), then of t; nil if they do
// not fit.
func (r *round) rearrange(t *task, moves []move) (*scheduler.Inventory, []*scheduler.Grant) {
	inv := r.free.Clone()
	for _, m := range moves {
		inv.Give(m.t.grant.Slots)
	}
	grants := make([]*scheduler.Grant, len(moves)+1)
	put := func(i int, k *task, o *candidate.Config) bool {
		grants[i] = r.finder.PlaceConfig(r.unreserved(inv, k.runTime(o)), k.Job, o, k.unpredicted)
		return grants[i] != nil && inv.Take(grants[i].Slots)
	}
	if !put(len(moves), t, t.best) {
		return nil, nil
	}
	for i, m := range moves {
		if m.to != nil && !put(i, m.t, m.to) {
			return nil, nil
		}
	}
	return inv, grants
}

// growth is a change of a running job to more devices, or to a better plan or layout.
type growth struct {
	to    *candidate.Config
	added float64 // load
	gain  float64 // seconds, net of the price of devices
	slope float64 // gain per added device
	grant *scheduler.Grant
}

// grow applies the growth with the steepest slope, and reports whether there was one.
func (r *round) grow() bool {
	var best growth
	var grown *task
	for _, k := range r.running {
		if !r.mayChange(k) {
			continue
		}
		for i := range k.options {
			g, ok := r.growth(k, &k.options[i])
			if !ok || k.runTime(g.to) >= k.left || g.gain < r.gate*k.StartCost.Seconds() || g.slope <= best.slope {
				continue
			}
			inv := r.free.Clone()
			inv.Give(k.grant.Slots)
			if g.grant = r.finder.PlaceOption(r.unreserved(inv, k.runTime(g.to)), k.Job, g.to); g.grant != nil {
				best, grown = g, k
			}
		}
	}
	if grown == nil {
		return false
	}
	r.free.Give(grown.grant.Slots)
	r.free.Take(best.grant.Slots)
	r.give(grown, best.grant, best.to)
	r.why(grown, "slope %.3g s per device: grows to %s", best.slope, sizeText(best.to))
	return true
}

// growth returns the growth of running task k to o; false if too few devices are free, or o
// has fewer devices.
func (r *round) growth(k *task, o *candidate.Config) (g growth, ok bool) {
	g = growth{to: o, added: max(o.Load-k.now.Load, 1)}
	more := o.Devices - k.now.Devices
	if o.Group != k.now.Group || o == k.now || more < 0 || more > r.free.FreeIn(o.Group) {
		return g, false
	}
	g.gain = k.left*r.rent(k.now) - r.cost(k, o)
	g.slope = g.gain / g.added
	return g, true
}

func total(ms []move) float64 {
	sum := 0.0
	for _, m := range ms {
		sum += m.loss
	}
	return sum
}

// what describes the move.
func (m move) what() string {
	if m.to == nil {
		return "stops"
	}
	return "shrinks to " + sizeText(m.to)
}

// sizeText describes the resources of o.
func sizeText(o *candidate.Config) string {
	if o.Shape.CPUs == 0 {
		return o.Shape.Devices
	}
	return fmt.Sprintf("%s with %d CPUs", o.Shape.Devices, o.Shape.CPUs)
}

// names describes moves for the reason of the job that gains.
func names(ms []move) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = fmt.Sprintf("%s %s", m.t.Job.ID, m.what())
	}
	return strings.Join(out, ", ")
}
