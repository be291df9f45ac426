package profiler

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// run is the state of a campaign while it is run or explained.
type run struct {
	c     Campaign
	o     Options
	label string
	now   func() time.Time

	points  []Point
	index   map[Identity]int // indices into points
	order   []int            // points in the order of Grid or Random; nil for Adaptive
	rows    []spec.Measurement
	number  int // number of the last point
	resumed int // number of rows of earlier sessions
	done    map[int]spec.Outcome
	skips   map[int]Rejected
	// tries are the retryable measurements in a row of each point, retryWhy the reason of the last one, and retried the
	// number of rows that took the place of one.
	tries    map[int]int
	retryWhy map[int]string
	retried  int
	keys     []*keyState // in canonical order
	byKey    map[spec.Key]*keyState
	groups   []*fitGroup
	space    *spacefill.Space // of points, see distances
	watch    spacefill.Watch

	began    time.Time
	inRunner float64 // seconds of this session spent in the Runner
	stopped  string
}

// newRun expands the space and adds the stored rows.
func newRun(ctx context.Context, c Campaign, o Options) (*run, error) {
	r := &run{
		c: c, o: o, label: cmp.Or(o.Label, "1"), now: o.Now,
		index: map[Identity]int{}, done: map[int]spec.Outcome{}, skips: map[int]Rejected{}, byKey: map[spec.Key]*keyState{},
		tries: map[int]int{}, retryWhy: map[int]string{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.began = r.now()
	if err := r.validate(); err != nil {
		return nil, err
	}
	if t, ok := o.Runner.(Tabled); ok && r.o.Machine.Configs == nil {
		r.o.Machine.Configs = t.Configs()
	}
	var err error
	if r.points, _, err = c.Points(r.o.Machine); err != nil {
		return nil, err
	}
	if only := o.Only; only != nil {
		r.points = slices.DeleteFunc(r.points, func(p Point) bool { return !only(p.Config) })
	}
	for i, p := range r.points {
		r.index[r.identity(p.Config)] = i
		k := p.Config.Key()
		if r.byKey[k] == nil {
			r.byKey[k] = &keyState{key: k}
			r.keys = append(r.keys, r.byKey[k])
		}
		r.byKey[k].points = append(r.byKey[k].points, i)
	}
	slices.SortFunc(r.keys, func(a, b *keyState) int { return perfmodel.CompareKeys(a.key, b.key) })
	r.groupKeys()
	if err := r.setWanted(); err != nil {
		return nil, err
	}
	r.sequence()
	if err := r.resume(); err != nil {
		return nil, err
	}
	return r, r.refit(ctx)
}

func (r *run) validate() error {
	if !slices.Contains([]Order{"", Adaptive, Random, Grid}, r.c.Choose) {
		return fmt.Errorf("profiler: campaign %s: order %q is not adaptive, random or grid", r.c.Name, r.c.Choose)
	}
	if err := checkName("campaign name", r.c.Name); err != nil {
		return fmt.Errorf("profiler: %w", err)
	}
	if err := checkName("label", r.label); err != nil {
		return fmt.Errorf("profiler: %w", err)
	}
	return nil
}

// identity identifies c among the points of the run. On accelerators CPUs count only if the campaign sets them:
// the number of CPUs that the machine gives a process may change between sessions, which is no reason to
// measure again.
func (r *run) identity(c spec.Config) Identity {
	id := IdentityOf(c)
	if !r.c.Space.Measured && !r.o.Machine.CPU && r.c.Point.Threads == 0 {
		id.cpus = 0
	}
	return id
}

// sequence sets the order of Grid and Random.
func (r *run) sequence() {
	if r.adaptive() {
		return
	}
	r.order = make([]int, len(r.points))
	for i := range r.order {
		r.order[i] = i
	}
	if r.c.Choose == Random {
		rng := rand.New(rand.NewPCG(r.o.Seed, 0x6f72646572)) // "order"
		rng.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	}
}

// simulated reports whether the runner uses a table or a formula.
func (r *run) simulated() bool {
	return r.c.Runner.Name == RunnerReplay || r.c.Runner.Name == RunnerSynthetic
}

func (r *run) adaptive() bool { return r.c.Choose == "" || r.c.Choose == Adaptive }

// measured returns the number of points with rows.
func (r *run) measured() int { return len(r.rows) - r.retried }

// open reports whether point i may still be measured.
func (r *run) open(i int) bool {
	_, done := r.done[i]
	_, skipped := r.skips[i]
	return !done && !skipped
}

// add adds a stored measurement of this run.
func (r *run) add(m spec.Measurement) {
	r.rows = append(r.rows, m)
	r.number = max(r.number+1, pointNumber(m))
	if e, ok := errorOf(&m); ok {
		r.watch.Add(e)
	}
	i, ok := r.index[r.identity(m.Config)]
	if ok {
		r.done[i] = m.Outcome
		r.addTry(i, &m)
	}
	if k := r.byKey[m.Config.Key()]; k != nil {
		k.add(m)
		k.fresh = false
		r.skipLarger(k, m)
	}
}

// state returns the progress of the run.
func (r *run) state() State {
	s := State{
		Campaign: r.c.Name, Label: r.label, Points: len(r.points), Done: r.measured(), Skipped: len(r.skips),
		ByOutcome: map[spec.Outcome]int{}, DeviceSec: r.deviceSec(), WallSec: r.wallSec(), Stopped: r.stopped,
	}
	for _, m := range Latest(r.rows) {
		s.ByOutcome[m.Outcome]++
	}
	for i := range r.points {
		if skip, ok := r.skips[i]; ok {
			s.Skips = append(s.Skips, skip)
		}
	}
	for _, b := range r.keys {
		s.Models = append(s.Models, b.state(r))
	}
	if r.stopped == "" {
		s.ETASec = r.eta()
	}
	return s
}
