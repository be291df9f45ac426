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

// cpuMonitor samples the CPU from /proc and /sys below root.
type cpuMonitor struct {
	root    string
	threads int // cores per device
}

func (e cpuMonitor) open(devices []int, pgid func() int) (probe, error) {
	if _, ok := readCPUTimes(e.root); !ok {
		return nil, errors.New("/proc/stat cannot be read")
	}
	return &cpuProbe{
		root: e.root, want: float64(len(devices) * e.threads), processes: newMeasuredProcesses(e.root, pgid),
		group: ownControlGroup(e.root), clocks: clockFiles(e.root, len(devices)*e.threads), last: map[int]float64{},
	}, nil
}

func (cpuMonitor) close() {}

// A cpuProbe samples the CPU. All its counters start at 0 and are in seconds.
type cpuProbe struct {
	root      string
	want      float64 // CPUs the measured processes can use
	processes *measuredProcesses
	group     controlGroup
	clocks    []string // files of the clocks of the first CPUs

	begin   cpuTimes
	started bool
	last    map[int]float64 // CPU time of the measured processes, by id
	ours    float64
	held    time.Duration // throttled before the start
	hot     int           // thermal throttling events before the start

	mu          sync.Mutex
	cpus        int
	busy        counter // all processes
	measured    counter // the measured processes
	steal       counter
	throttled   counter
	temperature counter // events
	clock       history
}

func (p *cpuProbe) close() {}

// sample reads the counters. If slow is set, it also looks for new processes, and reads clocks and throttling.
func (p *cpuProbe) sample(now time.Time, slow bool) {
	t, ok := readCPUTimes(p.root)
	if !ok {
		return
	}
	if slow {
		for _, pid := range procfs.IDs(p.root) {
			if ours, _ := p.processes.has(pid, now); ours {
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
		p.temperature.add(now, float64(hot-p.hot))
	}
	if slow {
		p.clock.add(clock)
	}
}

// count adds the CPU time that the measured processes used since the last call. Time before a process was found
// counts too, since the measured command started it.
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

// cpuTimes holds the counters of /proc/stat, in seconds summed over all CPUs.
type cpuTimes struct {
	busy  float64 // user, nice, system, interrupts
	steal float64 // time that a process was ready, but the hypervisor ran other machines
	cpus  int
}

// readCPUTimes reads /proc/stat (proc(5)). It returns false if it cannot. It runs at 10 Hz, so it does not use
// package procfs, which would parse ten values per CPU, about 1 ms on 128 CPUs.
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
			break // the lines of CPUs come first
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

// ticks returns field i in seconds, 0 if it is missing.
func ticks(f []string, i int) float64 {
	if i >= len(f) {
		return 0
	}
	v, _ := strconv.ParseUint(f[i], 10, 64)
	return float64(v) / procfs.UserHz
}
