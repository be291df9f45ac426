package device

import (
	"os"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// measuredProcesses distinguishes the measured processes from others. Measured are a process group, its
// descendants, and the descendants of this process. The group alone is not enough, since launchers start
// workers in other sessions. Results are cached for pidLifetime.
type measuredProcesses struct {
	root  string
	self  int // this process, which is not measured
	group func() int

	known   map[int]bool
	ofGroup int // the group that known was computed for
	since   time.Time
}

// pidLifetime is the time for which a process id is assumed to identify the same process.
const pidLifetime = 30 * time.Second

// ancestors is the largest number of generations to follow.
const ancestors = 64

func newMeasuredProcesses(root string, group func() int) *measuredProcesses {
	return &measuredProcesses{root: root, self: os.Getpid(), group: group}
}

// has reports whether pid is a measured process; found is false if there is no such process.
func (k *measuredProcesses) has(pid int, now time.Time) (ours, found bool) {
	if group := k.group(); k.known == nil || group != k.ofGroup || now.Sub(k.since) > pidLifetime {
		k.known, k.ofGroup, k.since = map[int]bool{}, group, now
	}
	return k.follow(pid, ancestors)
}

func (k *measuredProcesses) follow(pid, depth int) (ours, found bool) {
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
