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
	page     []float64     // the x of all of them, then the owed, then the got
	down     []int         // nodes that were
	warnings []string      // of the present fractions

	cursor scheduler.Cursor
	now    []*scheduler.JobState // who is inside, by arrival
	found  []*book               // the book of each, nil for those that came since
	stale  bool                  // there are others inside than those of jobs

	spare []float64          // the memory of the next page
	given []lease            // scratch of newLeases
	queue claimQueue         // scratch of rightful
	out   []*scheduler.Grant // scratch of decision
}

// book is what a job is to get and got, by way.
type book struct {
	job       spec.JobID
	menu      *menu
	ways      []Way
	x         []float64 // fractions of time
	last      int       // the way it holds or held last, -1 = none
	owed, got []float64 // seconds, what is long ago counting less
	rank      []int32   // see claimQueue

	grant *scheduler.Grant // whose way was looked up last
	held  int              // that way
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
	b.meet(s)
	dt := (s.Now - b.at).Seconds()
	if dt <= 0 {
		return
	}
	b.at = s.Now
	fade := math.Exp(-dt / memory.Seconds())
	n := len(b.page) / 3
	x, owed, got := b.page[:n], b.page[n:2*n], b.page[2*n:]
	for i := range x {
		owed[i] = owed[i]*fade + x[i]*dt
		got[i] *= fade
	}
	for i, k := range b.found {
		if k == nil || b.now[i].Grant == nil {
			continue
		}
		if w := held(k, b.now[i].Grant); w >= 0 {
			k.got[w] += dt
			k.last = w
		}
	}
}

// meet finds out who is inside. Where nobody came or went that costs no more than
// what changed.
func (b *books) meet(s *scheduler.Snapshot) {
	changed, all := s.Changed(&b.cursor)
	if !all && !slices.ContainsFunc(changed, b.news) {
		return
	}
	b.now = append(b.now[:0], s.Jobs()...)
	b.find()
	b.stale = !slices.Equal(b.found, b.jobs)
}

// news reports whether j has gone, or came.
func (b *books) news(j *scheduler.JobState) bool {
	_, known := slices.BinarySearchFunc(b.now, j.Order, func(j *scheduler.JobState, order int) int { return j.Order - order })
	return !known || j.Phase == scheduler.Finished
}

// find looks for the book of each job inside. Both are by arrival, so that most are
// found where the last one was.
func (b *books) find() {
	b.found = b.found[:0]
	next := 0
	for _, j := range b.now {
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
}

// way returns which way a grant is, -1 if none.
func (k *book) way(c spec.Cluster, g *scheduler.Grant) int {
	if k.grant != g {
		group, n := groupOf(c, g.Slots[0].Node), g.Devices()
		k.grant, k.held = g, slices.IndexFunc(k.ways, func(w Way) bool { return w.Group == group && w.Devices == n })
	}
	return k.held
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
	shares, err := b.menus.sharesOf(ctx, s, b.found)
	if err != nil {
		return err
	}
	if err := shares.fill(ctx, b.objective); err != nil {
		return err
	}
	for i, k := range b.found {
		if k == nil {
			j := &shares.Jobs[i]
			b.found[i] = &book{job: j.State.Job.ID, menu: j.menu, ways: j.Ways, last: -1, rank: make([]int32, len(j.Ways))}
		}
	}
	b.open(s, shares)
	return nil
}

// open makes the books found, one of each job inside, those of the fractions of shares.
func (b *books) open(s *scheduler.Snapshot, shares *Shares) {
	n := 0
	for _, k := range b.found {
		n += len(k.ways)
	}
	page := slices.Grow(b.spare[:0], 3*n)[:3*n]
	clear(page)
	at := 0
	for i, k := range b.found {
		line := func(part int, was []float64) []float64 {
			from := part*n + at
			to := from + len(k.ways)
			copy(page[from:to], was)
			return page[from:to:to]
		}
		k.x, k.owed, k.got = line(0, shares.Jobs[i].X), line(1, k.owed), line(2, k.got)
		at += len(k.ways)
	}
	b.page, b.spare = page, b.page
	b.jobs, b.stale = append(b.jobs[:0], b.found...), false
	b.warnings, b.down = shares.Warnings, slices.Clone(s.Down)
}

// current reports whether the fractions are for the jobs and nodes of s, which the
// books are settled for.
func (b *books) current(s *scheduler.Snapshot) bool {
	return !b.stale && slices.Equal(b.down, s.Down)
}
