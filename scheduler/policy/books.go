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
	byJob    map[spec.JobID]*book
	down     []int    // nodes that were
	warnings []string // of the present fractions
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
	dt := (s.Now - b.at).Seconds()
	if dt <= 0 {
		return
	}
	b.at = s.Now
	fade := math.Exp(-dt / memory.Seconds())
	for _, k := range b.byJob {
		for w, x := range k.x {
			k.owed[w], k.got[w] = k.owed[w]*fade+x*dt, k.got[w]*fade
		}
	}
	for _, j := range s.Jobs() {
		if j.Grant == nil {
			continue
		}
		if k := b.byJob[j.Job.ID]; k != nil {
			if w := k.way(s.Cluster, j.Grant); w >= 0 {
				k.got[w] += dt
				k.last = w
			}
		}
	}
}

// way returns which way a grant is, -1 if none.
func (k *book) way(c spec.Cluster, g *scheduler.Grant) int {
	group, n := groupOf(c, g.Slots[0].Node), g.Devices()
	for w := range k.ways {
		if k.ways[w].Group == group && k.ways[w].Devices == n {
			return w
		}
	}
	return -1
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
	shares, err := b.menus.sharesOf(ctx, s)
	if err != nil {
		return err
	}
	for i := range shares.Jobs {
		if k := b.byJob[shares.Jobs[i].State.Job.ID]; k != nil {
			shares.Jobs[i].Last = k.last
		}
	}
	if err := shares.fill(ctx, b.objective); err != nil {
		return err
	}
	old := b.byJob
	b.byJob, b.jobs = make(map[spec.JobID]*book, len(shares.Jobs)), b.jobs[:0]
	for i := range shares.Jobs {
		j := &shares.Jobs[i]
		k := b.open(old, j.State.Job.ID, j.Ways)
		k.menu, k.x = j.menu, j.X
		b.jobs = append(b.jobs, k)
	}
	b.warnings, b.down = shares.Warnings, slices.Clone(s.Down)
	return nil
}

// open returns the book of a job, the old one if there is one.
func (b *books) open(old map[spec.JobID]*book, id spec.JobID, ways []Way) *book {
	k := old[id]
	if k == nil {
		k = &book{job: id, ways: ways, last: -1, owed: make([]float64, len(ways)), got: make([]float64, len(ways))}
	}
	b.byJob[id] = k
	return k
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
