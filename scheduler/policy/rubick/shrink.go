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

// move is one way for a running job to give up devices.
type move struct {
	t     *task
	to    *candidate.Config // nil = stop
	loss  float64           // seconds by which the job ends later
	freed float64           // devices, or what CPUs come to
}

// slope is what the move costs per device.
func (m move) slope() float64 { return m.loss / m.freed }

// devices returns how many it gives up.
func (m move) devices() int {
	if m.to == nil {
		return m.t.now.Devices
	}
	return m.t.now.Devices - m.to.Devices
}

// mayChange reports whether t, which runs, is known, not yet touched in this
// round, and has restart budget left.
func (r *round) mayChange(t *task) bool {
	return t.now != nil && t.grant == t.Grant && t.spare
}

// spare reports whether another restart of t, which runs, is within its budget.
func (r *round) spare(t *task) bool {
	run := (r.s.Now - t.FirstRun).Seconds() + t.left
	return float64(t.Restarts+1)*t.StartCost.Seconds() <= r.budget*run
}

// moves returns what running jobs could give up for t, flattest slope first,
// without those that lose more by it than t gains. They are valid until the next
// call.
func (r *round) moves(t *task, gain float64) []move {
	ms := r.scratch[:0]
	for _, k := range r.running {
		if !r.mayChange(k) || k.now.Group != t.best.Group {
			continue
		}
		most := gain
		if binds(t, k) {
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

// freed returns what k gives up if it runs with o: devices, or where it keeps as many,
// what its CPUs come to. 0 if it is to have more of either.
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

// binds reports whether t may take from k whatever k loses.
func binds(t, k *task) bool { return t.Job.Guaranteed && !k.Job.Guaranteed }

// loss returns by how many seconds k ends later if it runs with o, or not at
// all, for the sake of t: either it gets its devices back when t is done, at
// another start cost, or it goes on as it is then.
func (r *round) loss(t, k *task, o *candidate.Config) float64 {
	start, lent := k.StartCost.Seconds(), t.in(t.best)
	if o == nil {
		return start + lent
	}
	back := 2*start + lent*max(1-o.Rate/k.now.Rate, 0)
	return min(back, k.in(o)-k.left)
}

// feed starts t on devices that running jobs give up, if t gains more by it
// than they lose together. What t gains is the wait it is spared. A guaranteed
// job takes from best-effort jobs whatever they lose.
func (r *round) feed(t *task) bool {
	if t.best == nil || t.blind {
		return false
	}
	gain, _ := r.earliest(t, t.best)
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
	r.fed(t, chosen, gain)
	return true
}

// fed says why t is fed.
func (r *round) fed(t *task, chosen []move, gain float64) {
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
	r.why(t, "guarantee binds: %s", names(chosen))
}

// choose returns moves that make room for t.
func (r *round) choose(t *task, gain float64) ([]move, bool) {
	all := r.moves(t, gain)
	var chosen []move
	loss, room, used := 0.0, r.free.FreeIn(t.best.Group), map[*task]bool{}
	for _, m := range all {
		if used[m.t] || loss+m.loss > gain && !binds(t, m.t) {
			continue
		}
		chosen, used[m.t] = append(chosen, m), true
		loss, room = loss+m.loss, room+m.devices()
		if room >= t.best.Devices && r.fits(t, chosen) {
			return r.relax(t, chosen, all), true
		}
	}
	return nil, false
}

// relax drops moves that turn out not to be needed, and lets the others give up
// less where that is enough.
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

// rearrange places t and the moved jobs on what they leave. It returns the
// devices still free and the grants of the moves, nil for a stop, then of t; or
// nil if that does not fit.
func (r *round) rearrange(t *task, moves []move) (*scheduler.Inventory, []*scheduler.Grant) {
	inv := r.free.Clone()
	for _, m := range moves {
		inv.Give(m.t.grant.Slots)
	}
	grants := make([]*scheduler.Grant, len(moves)+1)
	put := func(i int, k *task, o *candidate.Config) bool {
		grants[i] = r.belief.PlaceOption(r.without(inv, k.in(o)), k.Job, o)
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

// growth is a way for a running job to have more devices, or others, or another
// plan on as many.
type growth struct {
	to    *candidate.Config
	added float64 // devices, or what CPUs come to
	gain  float64 // seconds, with devices at their price
	slope float64 // gain per added device
	grant *scheduler.Grant
}

// grow gives devices left over to the running job that gains the most seconds
// per added device, and reports whether there was one. The same step changes a
// job to a better plan or layout on as many devices.
func (r *round) grow() bool {
	var best growth
	var grown *task
	for _, k := range r.running {
		if !r.mayChange(k) {
			continue
		}
		for i := range k.options {
			g, ok := r.growth(k, &k.options[i])
			if !ok || k.in(g.to) >= k.left || g.gain < r.gate*k.StartCost.Seconds() || g.slope <= best.slope {
				continue
			}
			inv := r.free.Clone()
			inv.Give(k.grant.Slots)
			if g.grant = r.belief.PlaceOption(r.without(inv, k.in(g.to)), k.Job, g.to); g.grant != nil {
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

// growth returns what k, which runs, would gain by changing to o; false if there
// are too few devices for it, or it would give some up.
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

// what says what happens to the job.
func (m move) what() string {
	if m.to == nil {
		return "stops"
	}
	return "shrinks to " + sizeText(m.to)
}

// sizeText says what o runs on.
func sizeText(o *candidate.Config) string {
	if o.Shape.CPUs == 0 {
		return o.Shape.Devices
	}
	return fmt.Sprintf("%s with %d CPUs", o.Shape.Devices, o.Shape.CPUs)
}

// names lists moves as they are told to the job that gains.
func names(ms []move) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = fmt.Sprintf("%s %s", m.t.Job.ID, m.what())
	}
	return strings.Join(out, ", ")
}
