package device

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHz is the unit of CPU times in /proc, 1/s. It is 100 for programs on every
// architecture Go runs Linux on (proc(5), sysconf(_SC_CLK_TCK)).
const userHz = 100

// A process is one as /proc/PID/stat shows it.
type process struct {
	pid, parent, group int
	name               string
	cpu                float64 // seconds of CPU time so far, children excluded
}

// readProcess reads one process, false when it is gone or /proc is not there.
func readProcess(root string, pid int) (process, bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	// The name is in parentheses and may hold anything, parentheses too.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 13 {
		return process{}, false
	}
	p := process{pid: pid, name: strings.ToValidUTF8(string(text[open+1:end]), "\uFFFD")} // the kernel cuts it at 15 bytes
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	p.cpu = (user + system) / userHz
	return p, true
}

// processIDs lists the processes of this machine, in no order.
func processIDs(root string) []int {
	dir, err := os.Open(filepath.Join(root, "proc"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

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
	p, ok := readProcess(k.root, pid)
	switch {
	case !ok:
		return false, false
	case pid == k.self || pid <= 1 || depth == 0:
	case p.parent == k.self || k.ofGroup > 1 && p.group == k.ofGroup:
		ours = true
	case p.parent > 1:
		ours, _ = k.follow(p.parent, depth-1)
	}
	k.known[pid] = ours
	return ours, true
}
