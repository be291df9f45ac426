package device

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// A fakeMachine is an invented machine with four CPUs.
type fakeMachine struct {
	t           *testing.T
	root        string
	busy, steal float64 // seconds of all CPUs
	held        float64 // seconds
	hot         int
	kHz         int
}

func newFakeMachine(t *testing.T) *fakeMachine {
	s := &fakeMachine{t: t, root: t.TempDir(), busy: 1000, steal: 50, kHz: 2_600_000}
	writeSelf(t, s.root, "0::/job\n")
	s.write()
	return s
}

func (s *fakeMachine) write() {
	s.t.Helper()
	text := fmt.Sprintf("cpu  %.0f 0 0 999999 88 0 0 %.0f 0 0\n", s.busy*procfs.UserHz, s.steal*procfs.UserHz)
	for i := range 4 {
		text += fmt.Sprintf("cpu%d 1 2 3 4 5 6 7 8 0 0\n", i)
	}
	writeFile(s.t, filepath.Join(s.root, "proc/stat"), text+"intr 1 2 3\nctxt 5\n")
	writeFile(s.t, filepath.Join(s.root, "sys/fs/cgroup/job/cpu.stat"), fmt.Sprintf("throttled_usec %.0f\n", s.held*1e6))
	writeFile(s.t, filepath.Join(s.root, "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"), strconv.Itoa(s.hot)+"\n")
	writeFile(s.t, filepath.Join(s.root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"), strconv.Itoa(s.kHz)+"\n")
}

// play simulates a machine at 10 Hz. ours are the measured processes, with the CPUs that each keeps busy;
// others, steal and held are numbers of CPUs.
type play struct {
	length             time.Duration
	devices            int
	ours               map[int]float64
	others, steal, cap float64
	hot                bool
}

func (s *fakeMachine) play(p play) *cpuProbe {
	s.t.Helper()
	devices := make([]int, p.devices)
	probe, err := cpuMonitor{root: s.root, threads: 1}.open(devices, func() int { return 100 })
	if err != nil {
		s.t.Fatal(err)
	}
	used := map[int]float64{}
	step := defaultPeriod.Seconds()
	for at := time.Duration(0); at <= p.length; at += defaultPeriod {
		for pid := range p.ours {
			writeProcess(s.t, s.root, procfs.Process{PID: pid, Parent: 1, Group: 100, Name: "rank", CPU: used[pid]})
		}
		writeProcess(s.t, s.root, procfs.Process{PID: 900, Parent: 1, Group: 900, Name: "other", CPU: used[900]})
		s.write()
		probe.sample(someTime.Add(at), at%slowPeriod == 0)
		for pid, cpus := range p.ours {
			used[pid] += cpus * step
			s.busy += cpus * step
		}
		used[900] += p.others * step
		s.busy += p.others * step
		s.steal += p.steal * step
		s.held += p.cap * step
		if p.hot {
			s.hot++
		}
	}
	return probe.(*cpuProbe)
}

var someTime = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func part(p probe, from, to time.Duration) Watched {
	return p.judge(someTime.Add(from), someTime.Add(to))
}

func TestCPUAlone(t *testing.T) {
	got := part(newFakeMachine(t).play(play{length: 10 * time.Second, devices: 2, ours: map[int]float64{100: 1, 101: 0.9}, others: 0.1}), 2*time.Second, 8*time.Second)
	if got.Doubt != "" || got.Env[profiler.EnvWarning] != "" || got.Env[profiler.EnvShared] != "" {
		t.Errorf("got %+v", got)
	}
	for key, want := range map[string]float64{EnvCPUUsed: 1.9, EnvCPUOthers: 0.1, EnvCPUSteal: 0, EnvCPUClock: 2.6e9} {
		if v, err := strconv.ParseFloat(got.Env[key], 64); err != nil || math.Abs(v-want) > 0.02*max(want, 1) {
			t.Errorf("%s is %q, want %g", key, got.Env[key], want)
		}
	}
}

func TestCPUContention(t *testing.T) {
	for _, tc := range []struct {
		name    string
		p       play
		key     string
		text    string // in Env[key]
		doubted bool
	}{
		{"others on free CPUs", play{devices: 1, ours: map[int]float64{100: 1}, others: 0.9}, profiler.EnvWarning, "", false},
		{"many others on free CPUs", play{devices: 1, ours: map[int]float64{100: 1}, others: 1.5}, profiler.EnvWarning, "caches", false},
		{"a few others on ours", play{devices: 4, ours: map[int]float64{100: 3.72}, others: 0.28}, profiler.EnvWarning, "took 7 % of the 4", false},
		{"others on ours", play{devices: 4, ours: map[int]float64{100: 3}, others: 1}, profiler.EnvShared, "took 25 % of the 4", true},
		{"more devices than CPUs", play{devices: 8, ours: map[int]float64{100: 3}, others: 1}, profiler.EnvShared, "took 25 % of the 4", true},
		{"a little stolen", play{devices: 2, ours: map[int]float64{100: 2}, steal: 0.2}, profiler.EnvWarning, "5 % of CPU time", false},
		{"much stolen", play{devices: 2, ours: map[int]float64{100: 2}, steal: 1}, profiler.EnvShared, "25 % of CPU time", true},
		{"a quota", play{devices: 2, ours: map[int]float64{100: 2}, cap: 0.4}, profiler.EnvThrottle, "quota stopped processes 40 %", true},
		{"a hardly felt quota", play{devices: 2, ours: map[int]float64{100: 2}, cap: 0.02}, profiler.EnvWarning, "quota stopped processes 2 %", false},
		{"heat", play{devices: 2, ours: map[int]float64{100: 2}, hot: true}, profiler.EnvThrottle, "slowed down for heat", true},
	} {
		tc.p.length = 10 * time.Second
		got := part(newFakeMachine(t).play(tc.p), 2500*time.Millisecond, 9500*time.Millisecond)
		if tc.doubted != (got.Doubt != "") || !strings.Contains(got.Env[tc.key], tc.text) || (tc.text == "") != (got.Env[tc.key] == "") {
			t.Errorf("%s: %+v, want %q in %s", tc.name, got, tc.text, tc.key)
		}
	}
}

// TestCPUOutsideTheWatch: outside the watched time, the only result is a warning.
func TestCPUOutsideTheWatch(t *testing.T) {
	p := newFakeMachine(t).play(play{length: 3 * time.Second, devices: 1})
	if got := part(p, time.Second, time.Minute); got.Doubt != "" || !strings.Contains(got.Env[profiler.EnvWarning], "not watched") {
		t.Errorf("got %+v", got)
	}
	if got := p.judge(time.Time{}, time.Time{}); got.Doubt != "" || got.Env[EnvCPUUsed] != "0.000" {
		t.Errorf("all of it: %+v", got)
	}
	if _, err := (cpuMonitor{root: t.TempDir(), threads: 1}).open([]int{0}, nil); err == nil {
		t.Error("a machine without /proc/stat is watched")
	}
}

// TestCPUOfShortLivedProcesses: processes that start and end are counted while they exist, and a reused process
// id does not reduce the time.
func TestCPUOfShortLivedProcesses(t *testing.T) {
	s := newFakeMachine(t)
	probe, err := cpuMonitor{root: s.root, threads: 1}.open([]int{0}, func() int { return 100 })
	if err != nil {
		t.Fatal(err)
	}
	p := probe.(*cpuProbe)
	at := someTime
	look := func(busy float64) {
		s.busy = 1000 + busy
		s.write()
		at = at.Add(time.Second)
		p.sample(at, true)
	}
	rank := procfs.Process{PID: 100, Parent: 1, Group: 100, Name: "rank"}
	look(0)
	rank.CPU = 5
	writeProcess(t, s.root, rank)
	look(5)
	if err := os.RemoveAll(filepath.Join(s.root, "proc/100")); err != nil {
		t.Fatal(err)
	}
	look(5)
	rank.CPU = 1
	writeProcess(t, s.root, rank)
	look(6)
	if p.ours != 6 {
		t.Errorf("%g s of CPU time, want 6", p.ours)
	}
}

func TestParseCPUTimes(t *testing.T) {
	for text, want := range map[string]cpuTimes{
		"cpu  100 10 20 1000 50 3 4 7 60 5\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\n": {busy: 1.37, steal: 0.07, cpus: 2},
		"cpu  100 10 20 1000\ncpu0 1 2 3 4\n":                                     {busy: 1.30, cpus: 1}, // a very old kernel
	} {
		if got, ok := parseCPUTimes(text); !ok || math.Abs(got.busy-want.busy) > 1e-9 || got.steal != want.steal || got.cpus != want.cpus {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "intr 1", "cpu", "cpu 1 2", "cpu0 1 2 3 4\n", "cpu  1 2 3 4\n"} {
		if got, ok := parseCPUTimes(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestWatchThisCPU finds the CPU time of a measured process on this machine.
func TestWatchThisCPU(t *testing.T) {
	if runtime.GOOS != "linux" {
		spectest.Lacks(t, "no /proc")
	}
	spectest.Retry(t, func() error { return watchSpinning(t) })
}

// watchSpinning compares the CPU time of a process with the observed one.
func watchSpinning(t *testing.T) error {
	var group atomic.Int64
	w := NewWatcher(WatchOptions{CPU: true})
	defer w.Close()
	stop := w.Watch([]int{0}, func() int { return int(group.Load()) })
	spin := exec.Command("sh", "-c", "while :; do :; done")
	spin.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := spin.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spin.Process.Kill(); _ = spin.Wait() }()
	group.Store(int64(spin.Process.Pid))
	time.Sleep(1200 * time.Millisecond)
	from, before := time.Now(), cpuOf(t, spin.Process.Pid)
	time.Sleep(1500 * time.Millisecond)
	to, after := time.Now(), cpuOf(t, spin.Process.Pid)
	got := stop(from, to)
	want := (after - before) / to.Sub(from).Seconds()
	used, err := strconv.ParseFloat(got.Env[EnvCPUUsed], 64)
	if err != nil || math.Abs(used-want) > 0.15 {
		return fmt.Errorf("the process used %g CPUs, we saw %+v", want, got)
	}
	return nil
}

func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	p, ok := procfs.Read("/", pid)
	if !ok {
		t.Fatal("the process is gone")
	}
	return p.CPU
}
