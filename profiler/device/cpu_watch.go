package device

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// cpuEye looks at the CPU by /proc and /sys below root.
type cpuEye struct {
	root    string
	threads int // cores per device
}

func (e cpuEye) open(devices []int, pgid func() int) (probe, error) {
	if _, ok := readCPUTimes(e.root); !ok {
		return nil, errors.New("/proc/stat cannot be read")
	}
	return &cpuProbe{
		root: e.root, want: float64(len(devices) * e.threads), kin: newKin(e.root, pgid),
		group: ownControlGroup(e.root), clocks: clockFiles(e.root, len(devices)*e.threads), last: map[int]float64{},
	}, nil
}

func (cpuEye) close() {}

// A cpuProbe looks at the CPU. All its counters are in seconds since it began.
type cpuProbe struct {
	root   string
	want   float64 // CPUs the measured processes can use
	kin    *kin
	group  controlGroup
	clocks []string // files of the clocks of the first CPUs

	begin   cpuTimes
	started bool
	last    map[int]float64 // CPU time of the measured processes, by id
	ours    float64
	held    time.Duration // throttled before we began
	hot     int           // thermal throttling events before we began

	mu        sync.Mutex
	cpus      int
	busy      curve // everybody
	measured  curve // the measured processes
	steal     curve
	throttled curve
	heat      curve // events
	clock     history
}

func (p *cpuProbe) close() {}

// sample reads the counters; with slow set it also looks for new processes,
// clocks and throttling.
func (p *cpuProbe) sample(now time.Time, slow bool) {
	t, ok := readCPUTimes(p.root)
	if !ok {
		return
	}
	if slow {
		for _, pid := range procfs.IDs(p.root) {
			if ours, _ := p.kin.has(pid, now); ours {
				p.last[pid] += 0
			}
		}
	}
	p.count()
	held, isHeld := time.Duration(0), false
	hot, isHot := 0, false
	clock := newReading(now)
	if slow {
		held, isHeld = p.group.throttled()
		hot, isHot = thermalEvents(p.root)
		clock.values[smClock] = meanClock(p.clocks)
	}
	if !p.started {
		p.started, p.begin, p.held, p.hot = true, t, held, hot
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpus = t.cpus
	p.busy.add(now, t.busy-p.begin.busy)
	p.steal.add(now, t.steal-p.begin.steal)
	p.measured.add(now, p.ours)
	if isHeld {
		p.throttled.add(now, (held - p.held).Seconds())
	}
	if isHot {
		p.heat.add(now, float64(hot-p.hot))
	}
	if slow {
		p.clock.add(clock)
	}
}

// count adds what the measured processes used since the last time. What a
// process used before it was found counts: it was started by what is measured.
func (p *cpuProbe) count() {
	for pid, before := range p.last {
		switch now, ok := procfs.Read(p.root, pid); {
		case !ok:
			delete(p.last, pid)
		case now.CPU > before:
			p.ours += now.CPU - before
			p.last[pid] = now.CPU
		}
	}
}

// cpuTimes are the counters of /proc/stat, in seconds of all CPUs together.
type cpuTimes struct {
	busy  float64 // user, nice, system, interrupts
	steal float64 // wanted to run, but the hypervisor ran others
	cpus  int
}

// readCPUTimes reads /proc/stat, false if it is not there (proc(5)).
func readCPUTimes(root string) (cpuTimes, bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err != nil {
		return cpuTimes{}, false
	}
	return parseCPUTimes(string(text))
}

func parseCPUTimes(text string) (cpuTimes, bool) {
	var t cpuTimes
	total := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "cpu") {
			break // the CPUs come first
		}
		if !strings.HasPrefix(line, "cpu ") {
			t.cpus++
			continue
		}
		f := strings.Fields(line)[1:]
		for _, i := range []int{0, 1, 2, 5, 6} {
			t.busy += ticks(f, i)
		}
		t.steal = ticks(f, 7)
		total = len(f) >= 4
	}
	return t, total && t.cpus > 0
}

// ticks returns field i in seconds, 0 where it is missing.
func ticks(f []string, i int) float64 {
	if i >= len(f) {
		return 0
	}
	v, _ := strconv.ParseUint(f[i], 10, 64)
	return float64(v) / procfs.UserHz
}
