package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ledgerModel is a ledger with an independent list of the jobs in the system.
type ledgerModel struct {
	t      *rapid.T
	ledger *Ledger
	inside []*JobState
	down   []int
	used   [5]int // devices of each node that jobs outside hold
	next   int

	cursor Cursor
	known  map[*JobState]*Grant // grants as seen by a policy that calls Changed occasionally
}

// TestLedger checks that after any updates Audit finds no difference, and that a reader of
// Changed has the same state as a reader of all jobs.
func TestLedger(t *testing.T) {
	cluster := spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 4}, {Count: 2, Devices: 2}}}
	rapid.Check(t, func(t *rapid.T) {
		b := &ledgerModel{t: t, ledger: NewLedger(cluster, nil), known: map[*JobState]*Grant{}}
		t.Repeat(map[string]func(*rapid.T){
			"enter":    func(*rapid.T) { b.enter() },
			"leave":    func(*rapid.T) { b.leave() },
			"apply":    func(*rapid.T) { b.apply() },
			"play":     func(*rapid.T) { b.play() },
			"look":     func(*rapid.T) { b.look() },
			"outage":   func(*rapid.T) { b.outage() },
			"occupy":   func(*rapid.T) { b.occupy() },
			"":         func(*rapid.T) { b.check() },
			"an older": func(*rapid.T) { b.older() },
		})
	})
}

func (b *ledgerModel) enter() {
	b.next += 2
	b.put(b.next)
}

// older adds a job that arrived before others.
func (b *ledgerModel) older() {
	order := rapid.IntRange(0, b.next).Draw(b.t, "order")
	if !slices.ContainsFunc(b.inside, func(j *JobState) bool { return j.Order == order }) {
		b.put(order)
	}
}

func (b *ledgerModel) put(order int) {
	j := &JobState{Order: order, Job: &spec.Job{ID: spec.JobID(fmt.Sprint(order)), Devices: rapid.IntRange(1, 5).Draw(b.t, "devices"),
		Tenant: rapid.SampledFrom([]string{"", "t"}).Draw(b.t, "tenant")}}
	b.ledger.Enter(j)
	b.inside = append(b.inside, j)
	slices.SortFunc(b.inside, func(a, b *JobState) int { return cmp.Compare(a.Order, b.Order) })
}

func (b *ledgerModel) leave() {
	if len(b.inside) == 0 {
		return
	}
	i := rapid.IntRange(0, len(b.inside)-1).Draw(b.t, "job")
	j := b.inside[i]
	held := j.Grant
	j.Phase, j.Grant = Finished, nil
	b.ledger.Leave(j, held)
	b.inside = slices.Delete(b.inside, i, i+1)
}

// outage makes a node go down, so that jobs with devices there lose them, or come up.
func (b *ledgerModel) outage() {
	node := rapid.IntRange(0, 4).Draw(b.t, "node")
	if slices.Contains(b.down, node) {
		b.down = slices.DeleteFunc(b.down, func(n int) bool { return n == node })
		b.ledger.NodeUp(node)
		return
	}
	for _, j := range b.inside {
		if j.Grant != nil && slices.ContainsFunc(j.Grant.Slots, func(s Slot) bool { return s.Node == node }) {
			b.ledger.Lose(j)
			j.Grant = nil
		}
	}
	b.down = append(b.down, node)
	b.ledger.NodeDown(node)
}

// occupy changes what jobs outside hold on a node, possibly beyond what jobs inside leave.
func (b *ledgerModel) occupy() {
	node, devices := rapid.IntRange(0, 4).Draw(b.t, "node"), rapid.IntRange(0, 5).Draw(b.t, "devices")
	size := b.ledger.free.Size(b.ledger.free.Group[node])
	fits := devices <= size-b.held(node) || slices.Contains(b.down, node)
	if devices > size {
		return
	}
	if got := b.ledger.Occupy(Slot{Node: node, Devices: devices}); got != fits {
		b.t.Fatalf("%d devices of node %d, of which jobs hold %d of %d, can be occupied: %v", devices, node, b.held(node), size, got)
	}
	if fits {
		b.used[node] = devices
	}
}

// held returns the devices of a node that jobs in the system hold.
func (b *ledgerModel) held(node int) (n int) {
	for _, j := range b.inside {
		if j.Grant != nil {
			for _, s := range j.Grant.Slots {
				if s.Node == node {
					n += s.Devices
				}
			}
		}
	}
	return n
}

// apply changes the grants of some jobs, possibly beyond the free devices.
func (b *ledgerModel) apply() {
	var changes []Change
	used := make([]int, 5)
	for _, j := range b.inside {
		to := j.Grant
		if rapid.Bool().Draw(b.t, "change") {
			to = nil
			if node := rapid.IntRange(-3, 4).Draw(b.t, "node"); node >= 0 {
				to = &Grant{Job: j.Job.ID, Slots: []Slot{{Node: node, Devices: rapid.IntRange(1, 2).Draw(b.t, "count")}}}
			}
			changes = append(changes, Change{j, to})
		}
		if to != nil {
			used[to.Slots[0].Node] += to.Slots[0].Devices
		}
	}
	fits := true
	for node, n := range used {
		fits = fits && n <= []int{4, 4, 4, 2, 2}[node]-b.used[node] && !(n > 0 && slices.Contains(b.down, node))
	}
	before := slices.Clone(b.ledger.Snapshot(0).Free().Free)
	err := b.ledger.Apply(changes)
	for _, c := range changes {
		if err == nil {
			c.Job.Grant = c.To
		}
	}
	if (err == nil) != fits {
		b.t.Fatalf("changes that use %v: %v", used, err)
	}
	if err != nil && (!slices.Equal(before, b.ledger.free.Free) || !strings.Contains(err.Error(), "devices, ")) {
		b.t.Fatalf("after error %v %v are free, before %v", err, b.ledger.free.Free, before)
	}
}

// play takes and gives devices like a policy that decides.
func (b *ledgerModel) play() {
	free := b.ledger.Snapshot(0).Free()
	for _, j := range b.inside {
		if j.Grant != nil && rapid.Bool().Draw(b.t, "give") {
			free.Give(j.Grant.Slots)
		}
	}
	free.Take([]Slot{{Node: rapid.IntRange(0, 4).Draw(b.t, "node"), Devices: 1}})
}

// look calls Changed.
func (b *ledgerModel) look() {
	s := b.ledger.Snapshot(0)
	jobs, all := s.Changed(&b.cursor)
	if all {
		clear(b.known)
	}
	for _, j := range jobs {
		if b.known[j] = j.Grant; j.Phase == Finished {
			delete(b.known, j)
		}
	}
	if len(b.known) != len(b.inside) {
		b.t.Fatalf("%d jobs are known, %d are in the system", len(b.known), len(b.inside))
	}
	for _, j := range b.inside {
		if g, ok := b.known[j]; !ok || g != j.Grant {
			b.t.Fatalf("job %s holds %v by its changes, but it holds %v", j.Job.ID, g, j.Grant)
		}
	}
	if again, all := s.Changed(&b.cursor); all || len(again) > 0 {
		b.t.Fatalf("%d jobs changed between two calls", len(again))
	}
}

func (b *ledgerModel) check() {
	if err := b.ledger.Audit(); err != nil {
		b.t.Fatal(err)
	}
	s := b.ledger.Snapshot(time.Second)
	if !slices.Equal(s.Jobs(), b.inside) {
		b.t.Fatal("the snapshot's jobs are not those in the system")
	}
	for node, free := range s.Free().Free {
		want := s.ledger.free.Size(s.ledger.free.Group[node]) - b.used[node]
		if slices.Contains(b.down, node) {
			want = 0
		}
		if idle := s.Idle().Free[node]; idle != want || free != want-b.held(node) {
			b.t.Fatalf("node %d has %d devices free and %d when idle, want %d and %d", node, free, idle, want-b.held(node), want)
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(b.inside), func(j *JobState) bool { return j.Grant != nil })
	if !slices.Equal(s.Waiting, waiting) {
		b.t.Fatalf("%d jobs are shown to wait, %d do", len(s.Waiting), len(waiting))
	}
	plain := NewSnapshot(0, s.Cluster, nil)
	plain.Waiting, plain.ledger = b.inside, nil
	if s.Requested() != plain.Requested() || s.RequestedBy("t") != plain.RequestedBy("t") {
		b.t.Fatalf("%d devices are requested, by t %d; want %d and %d", s.Requested(), s.RequestedBy("t"), plain.Requested(), plain.RequestedBy("t"))
	}
}

// TestAuditFinds checks that Audit finds errors.
func TestAuditFinds(t *testing.T) {
	cluster := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4}}}
	for name, spoil := range map[string]func(*Ledger, *JobState){
		"devices that do not exist":    func(_ *Ledger, j *JobState) { j.Grant = &Grant{Slots: []Slot{{Node: 0, Devices: 5}}} },
		"node 0 has 3 devices free":    func(l *Ledger, j *JobState) { j.Grant, l.waiting = &Grant{Slots: []Slot{{Node: 0, Devices: 1}}}, nil },
		"0 jobs wait":                  func(l *Ledger, j *JobState) { j.Grant = &Grant{}; l.waiting = append(l.waiting[:0], j) },
		"1 devices are requested":      func(l *Ledger, _ *JobState) { l.requested = 2 },
		"waits, but not in the ledger": func(l *Ledger, _ *JobState) { l.waiting = nil },
		"group 0 has 8 devices free":   func(l *Ledger, _ *JobState) { l.free.groups[0].total-- },
		"with 4 devices free":          func(l *Ledger, _ *JobState) { l.free.groups[0].with[4].count-- },
	} {
		l := NewLedger(cluster, nil)
		j := &JobState{Job: &spec.Job{ID: "a", Devices: 1}}
		l.Enter(j)
		if err := l.Audit(); err != nil {
			t.Fatal(err)
		}
		spoil(l, j)
		if err := l.Audit(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
}

// TestGrantSame checks that the batch of the plan does not matter if a job chooses its own.
func TestGrantSame(t *testing.T) {
	grant := func(micro int, elastic bool) *Grant {
		return &Grant{Job: "a", Plan: spec.Plan{DP: 2, MicroBatch: micro}, Shape: spec.NewShape(2), Slots: []Slot{{Node: 0, Devices: 2}}, Elastic: elastic}
	}
	for _, c := range []struct {
		a, b *Grant
		want bool
	}{
		{grant(1, false), grant(1, false), true},
		{grant(1, false), grant(2, false), false},
		{grant(1, true), grant(2, true), true},
		{grant(1, true), grant(1, false), false},
		{grant(1, true), nil, false},
	} {
		if got := c.a.Same(c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}
