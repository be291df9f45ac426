package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Ledger is the state of a cluster: the jobs in the system and their grants. The time of
// an update by the engine does not depend on the size of the cluster. A Snapshot costs
// nothing. A Ledger is not safe for concurrent use.
type Ledger struct {
	cluster spec.Cluster
	advance func(j *JobState, now time.Duration)

	free    *Inventory
	waiting []*JobState // by Order
	inside  []*JobState // jobs in the system by Order; finished ones are skipped, and dropped once they are half of them
	left    int         // number of finished jobs in inside

	down    []int // nodes, ascending; none of their devices is in free
	leaving []Leaving
	outside map[int]Slot // by node, what jobs outside the system hold; nil = nothing

	requested int            // devices requested by the jobs in the system
	byTenant  map[string]int // devices requested by the jobs of each tenant

	changed []*JobState // jobs with events, in order, from change number first on
	first   uint64

	shown []*JobState // scratch of the snapshots, which may reorder it

	found  Changes  // of the decision checked last
	round  uint64   // counts the decisions checked
	stamps []uint64 // by Order, the last one that named the job
}

// NewLedger returns the ledger of an idle cluster. advance updates the state of a job with
// devices to a time; nil = states are always up to date.
func NewLedger(c spec.Cluster, advance func(j *JobState, now time.Duration)) *Ledger {
	return &Ledger{cluster: c, advance: advance, free: NewInventory(c), byTenant: map[string]int{}}
}

// Enter adds a waiting job, which the ledger keeps. Its Order must differ from that of all
// other jobs; the highest is cheapest.
func (l *Ledger) Enter(j *JobState) {
	l.inside = insert(l.inside, j)
	l.waiting = insert(l.waiting, j)
	l.addRequest(j, 1)
	l.note(j)
}

// Leave removes j, with Phase Finished and without a Grant by now, and frees the grant that
// it held until now, nil = none.
func (l *Ledger) Leave(j *JobState, held *Grant) {
	if held == nil {
		l.waiting = remove(l.waiting, j)
	} else {
		l.free.undo()
		l.free.Give(held.Counts())
	}
	if l.left++; 2*l.left > len(l.inside) {
		l.inside = slices.DeleteFunc(l.inside, hasLeft)
		l.left = 0
	}
	l.addRequest(j, -1)
	l.note(j)
}

func hasLeft(j *JobState) bool { return j.Phase == Finished }

// addRequest adds the devices of j to those requested, or subtracts them with sign -1.
func (l *Ledger) addRequest(j *JobState, sign int) {
	l.requested += sign * j.Job.Devices
	l.byTenant[j.Job.Tenant] += sign * j.Job.Devices
	if l.byTenant[j.Job.Tenant] == 0 {
		delete(l.byTenant, j.Job.Tenant)
	}
}

// Lose makes j wait again without a decision, and frees the Grant it still has.
func (l *Ledger) Lose(j *JobState) {
	l.free.undo()
	l.free.Give(j.Grant.Counts())
	l.waiting = insert(l.waiting, j)
	l.note(j)
}

// NodeDown takes a node down: none of its devices is free until NodeUp. No job may hold
// any of them.
func (l *Ledger) NodeDown(node int) {
	if i, down := slices.BinarySearch(l.down, node); !down {
		l.down = slices.Insert(l.down, i, node)
		l.free.undo()
		l.free.Give(l.heldOutside(node))
		l.free.Take(l.free.whole(node))
	}
}

// NodeUp takes a node up again.
func (l *Ledger) NodeUp(node int) {
	if i, down := slices.BinarySearch(l.down, node); down {
		l.down = slices.Delete(l.down, i, i+1)
		l.free.undo()
		l.free.Give(l.free.whole(node))
		l.free.Take(l.heldOutside(node))
	}
}

// Occupy sets the devices and the part of the host that jobs outside the system hold on
// s.Node, at most what the node has. It reports false, and changes nothing, if jobs in the
// system hold some of them.
func (l *Ledger) Occupy(s Slot) bool {
	l.free.undo()
	if !l.isDown(s.Node) {
		was := l.heldOutside(s.Node)
		l.free.Give(was)
		if !s.nothing() && !l.free.Take([]Slot{s}) {
			l.free.Take(was)
			return false
		}
	}
	if l.outside == nil {
		l.outside = map[int]Slot{}
	}
	l.outside[s.Node] = s
	return true
}

// heldOutside returns what jobs outside the system hold on a node, as slots.
func (l *Ledger) heldOutside(node int) []Slot {
	if s := l.outside[node]; !s.nothing() {
		return []Slot{s}
	}
	return nil
}

// takeOutside takes what jobs outside the system hold from an idle inventory without the nodes
// that are down.
func (l *Ledger) takeOutside(inv *Inventory) {
	for node := range l.outside {
		if !l.isDown(node) {
			inv.Take(l.heldOutside(node))
		}
	}
}

func (l *Ledger) isDown(node int) bool {
	_, down := slices.BinarySearch(l.down, node)
	return down
}

// SetLeaving sets the nodes that are up and known to go down, ascending by node. The ledger keeps
// the slice.
func (l *Ledger) SetLeaving(nodes []Leaving) { l.leaving = nodes }

// Change is the change of one job by a decision.
type Change struct {
	Job *JobState
	To  *Grant // its new grant, nil = none
}

// Apply frees the grants of the jobs and takes their new ones, all at once. Devices that
// two jobs share count once. The engine sets the Grants afterwards. An error names the
// first job, in the given order, with devices that are not free; then nothing changes. A
// job must not occur twice.
func (l *Ledger) Apply(changes []Change) error {
	l.free.mark()
	for _, c := range changes {
		if c.Job.Grant != nil {
			l.free.Give(c.Job.Grant.Counts())
		}
	}
	for _, c := range changes {
		if c.To != nil && !l.free.Take(c.To.Counts()) {
			err := l.tooMuch(c.To)
			l.free.undo()
			return err
		}
	}
	l.free.keep()
	for _, c := range changes {
		switch {
		case c.Job.Grant == nil && c.To != nil:
			l.waiting = remove(l.waiting, c.Job)
		case c.Job.Grant != nil && c.To == nil:
			l.waiting = insert(l.waiting, c.Job)
		}
		l.note(c.Job)
	}
	return nil
}

// tooMuch returns an error that names the node with fewer devices, or less of the host,
// than granted, g included.
func (l *Ledger) tooMuch(g *Grant) error {
	for _, s := range g.Slots {
		has := l.free.Size(l.free.Group[s.Node])
		if granted := has - l.free.Free[s.Node] + s.Devices; granted > has {
			return fmt.Errorf("job %s: node %d has %d devices, %d are granted", g.Job, s.Node, has, granted)
		}
		if !l.free.hasHost(s) {
			return fmt.Errorf("job %s: node %d has %v of its host left, %v are granted", g.Job, s.Node, l.free.host[s.Node], s.Host)
		}
	}
	return fmt.Errorf("job %s: the granted devices are not free", g.Job) // unreachable: a node has too few
}

// note records an event of j for Snapshot.Changed. Once there are more events than jobs
// they are dropped, and readers look at all jobs.
func (l *Ledger) note(j *JobState) {
	const few = 64
	if len(l.changed) > max(few, len(l.inside)-l.left) {
		l.first += uint64(len(l.changed))
		l.changed = l.changed[:0]
	}
	l.changed = append(l.changed, j)
}

// Audit recomputes the incremental state and returns an error for the first difference.
func (l *Ledger) Audit() error {
	l.free.undo()
	free, requested, waiting := NewInventory(l.cluster), 0, 0
	sharing := map[spec.JobID]*Grant{}
	for _, node := range l.down {
		free.Take(free.whole(node))
	}
	l.takeOutside(free)
	for _, j := range l.inside {
		if hasLeft(j) {
			continue
		}
		requested += j.Job.Devices
		if j.Grant == nil {
			if waiting >= len(l.waiting) || l.waiting[waiting] != j {
				return fmt.Errorf("scheduler: job %s waits, but not in the ledger", j.Job.ID)
			}
			waiting++
			continue
		}
		if !free.Take(j.Grant.Counts()) {
			return fmt.Errorf("scheduler: job %s holds devices that do not exist: %v", j.Job.ID, j.Grant.Slots)
		}
		if j.Grant.With != "" {
			sharing[j.Job.ID] = j.Grant
		}
	}
	for id, g := range sharing {
		if !g.Shares(sharing[g.With]) {
			return fmt.Errorf("scheduler: job %s shares its devices with job %s, but not the reverse", id, g.With)
		}
	}
	switch {
	case waiting != len(l.waiting):
		return fmt.Errorf("scheduler: %d jobs wait, the ledger has %d", waiting, len(l.waiting))
	case requested != l.requested:
		return fmt.Errorf("scheduler: %d devices are requested, the ledger has %d", requested, l.requested)
	}
	return l.free.differs(free)
}

// Snapshot returns the present state as a policy sees it. It holds until the next update or
// snapshot.
func (l *Ledger) Snapshot(now time.Duration) *Snapshot {
	return &Snapshot{Now: now, Cluster: l.cluster, Down: l.down, Leaving: l.leaving, Waiting: l.waiting, ledger: l}
}

// insert inserts j into jobs by Order.
func insert(jobs []*JobState, j *JobState) []*JobState {
	if n := len(jobs); n == 0 || jobs[n-1].Order < j.Order {
		return append(jobs, j)
	}
	i, _ := slices.BinarySearchFunc(jobs, j.Order, byOrder)
	return slices.Insert(jobs, i, j)
}

// remove removes j from jobs by Order. It moves the smaller part of them.
func remove(jobs []*JobState, j *JobState) []*JobState {
	i, found := slices.BinarySearchFunc(jobs, j.Order, byOrder)
	switch {
	case !found:
		return jobs
	case i < len(jobs)/2:
		copy(jobs[1:i+1], jobs[:i])
		jobs[0] = nil
		return jobs[1:]
	}
	return slices.Delete(jobs, i, i+1)
}

func byOrder(j *JobState, order int) int { return cmp.Compare(j.Order, order) }
