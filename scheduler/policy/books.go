package policy

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// books keeps the fractions of an Objective and what has become of them.
type books struct {
	objective Objective
	menus     *menus

	at       time.Duration // up to when the books are kept
	jobs     []*book       // of the present fractions, by arrival
	found    []*book       // scratch of of
	given    []lease       // scratch of newLeases
	claims   []claim       // scratch of rightful
	down     []int         // nodes that were
	warnings []string      // of the present fractions
}

// book is what a job is to get and got, by way.
type book struct {
	job       spec.JobID
	menu      *menu
	ways      []Way
	x         []float64 // fractions of time
	last      int       // the way it holds or held last, -1 = none
	owed, got []float64 // seconds, what is long ago counting less
}

// memory is the time after which what was owed and got counts 1/e.
const memory = 2 * time.Hour

// settle brings the books up to now. Jobs that have gone are left as they are.
func (b *books) settle(s *scheduler.Snapshot) {
	b.credit(s, func(k *book, g *scheduler.Grant) int { return k.way(s.Cluster, g) })
}

// credit is settle where held says by which way a job has had the devices it holds,
// -1 if by none.
func (b *books) credit(s *scheduler.Snapshot, held func(*book, *scheduler.Grant) int) {
	dt := (s.Now - b.at).Seconds()
	if dt <= 0 {
		return
	}
	b.at = s.Now
	fade := math.Exp(-dt / memory.Seconds())
	for _, k := range b.jobs {
		for w, x := range k.x {
			k.owed[w], k.got[w] = k.owed[w]*fade+x*dt, k.got[w]*fade
		}
	}
	now := s.Jobs()
	for i, k := range b.of(now) {
		if k == nil || now[i].Grant == nil {
			continue
		}
		if w := held(k, now[i].Grant); w >= 0 {
			k.got[w] += dt
			k.last = w
		}
	}
}

// of returns the book of each job, nil for those that have none. Both are by
// arrival, so that most are found where the last one was.
func (b *books) of(now []*scheduler.JobState) []*book {
	b.found = b.found[:0]
	next := 0
	for _, j := range now {
		i := next
		for i < len(b.jobs) && b.jobs[i].job != j.Job.ID {
			i++
		}
		if i == len(b.jobs) {
			b.found = append(b.found, nil)
			continue
		}
		b.found = append(b.found, b.jobs[i])
		next = i + 1
	}
	return b.found
}

// way returns which way a grant is, -1 if none.
func (k *book) way(c spec.Cluster, g *scheduler.Grant) int {
	group, n := groupOf(c, g.Slots[0].Node), g.Devices()
	return slices.IndexFunc(k.ways, func(w Way) bool { return w.Group == group && w.Devices == n })
}

// groupOf returns the group of a node.
func groupOf(c spec.Cluster, node int) int {
	for g := range c.Groups {
		if node -= c.Groups[g].Count; node < 0 {
			return g
		}
	}
	return -1
}

// refresh asks the objective about the jobs of s.
func (b *books) refresh(ctx context.Context, s *scheduler.Snapshot) error {
	now := s.Jobs()
	found := b.of(now)
	shares, err := b.menus.sharesOf(ctx, s, found)
	if err != nil {
		return err
	}
	if err := shares.fill(ctx, b.objective); err != nil {
		return err
	}
	jobs := make([]*book, len(now))
	for i := range shares.Jobs {
		j := &shares.Jobs[i]
		k := found[i]
		if k == nil {
			k = &book{job: j.State.Job.ID, menu: j.menu, ways: j.Ways, last: -1, owed: make([]float64, len(j.Ways)), got: make([]float64, len(j.Ways))}
		}
		k.x, jobs[i] = j.X, k
	}
	b.jobs, b.warnings, b.down = jobs, shares.Warnings, slices.Clone(s.Down)
	return nil
}

// current reports whether the fractions are for the jobs and nodes of s.
func (b *books) current(s *scheduler.Snapshot) bool {
	now := s.Jobs()
	if len(b.jobs) != len(now) || !slices.Equal(b.down, s.Down) {
		return false
	}
	for i, j := range now {
		if b.jobs[i].job != j.Job.ID {
			return false
		}
	}
	return true
}
