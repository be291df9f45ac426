package device

import (
	"os"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// A kin tells the processes that are measured from others: those of a process
// group, what they started, and what this process started. Launchers give their
// workers sessions of their own, so that the group alone does not do. It
// remembers what it found for a while.
type kin struct {
	root  string
	self  int // this process, which is not one of them
	group func() int

	known   map[int]bool
	ofGroup int // the group known is of
	since   time.Time
}

// kinMemory is how long a process id is taken to mean the same process.
const kinMemory = 30 * time.Second

// ancestors bounds how far up a process is followed.
const ancestors = 64

func newKin(root string, group func() int) *kin {
	return &kin{root: root, self: os.Getpid(), group: group}
}

// has says whether pid is one of them; found is false when there is no such
// process.
func (k *kin) has(pid int, now time.Time) (ours, found bool) {
	if group := k.group(); k.known == nil || group != k.ofGroup || now.Sub(k.since) > kinMemory {
		k.known, k.ofGroup, k.since = map[int]bool{}, group, now
	}
	return k.follow(pid, ancestors)
}

func (k *kin) follow(pid, depth int) (ours, found bool) {
	if ours, ok := k.known[pid]; ok {
		return ours, true
	}
	p, ok := procfs.Read(k.root, pid)
	switch {
	case !ok:
		return false, false
	case pid == k.self || pid <= 1 || depth == 0:
	case p.Parent == k.self || k.ofGroup > 1 && p.Group == k.ofGroup:
		ours = true
	case p.Parent > 1:
		ours, _ = k.follow(p.Parent, depth-1)
	}
	k.known[pid] = ours
	return ours, true
}
