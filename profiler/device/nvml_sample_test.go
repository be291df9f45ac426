//go:build cgo && linux

package device

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
)

// source returns a source for some devices of r.
func (r *mockMachine) source(t testing.TB, devices ...int) *nvmlSource {
	t.Helper()
	d, err := openDriver(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	s, err := newNVMLSource(d, devices)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// record samples devices of r at 10 Hz for a time, starting at someTime. Before each sample, scene changes the
// state. Processes are read below root.
func (r *mockMachine) record(t testing.TB, root string, length time.Duration, scene func(at time.Duration), devices ...int) *gpuProbe {
	t.Helper()
	p := newGPUProbe(r.source(t, devices...), devices, newMeasuredProcesses(root, func() int { return 100 }))
	for at := time.Duration(0); at <= length; at += defaultPeriod {
		scene(at)
		p.sample(someTime.Add(at), at%slowPeriod == 0)
	}
	return p
}

// part judges a part of the recording.
func (p *gpuProbe) part(from, to time.Duration) Watched {
	return p.judge(someTime.Add(from), someTime.Add(to))
}

func TestAQuietRun(t *testing.T) {
	r := newMockMachine(t, dgx(h200))
	p := r.record(t, t.TempDir(), 20*time.Second, func(at time.Duration) {
		for _, f := range r.gpus[:2] {
			f.set(func(f *fakeGPU) {
				f.util, f.used = nvml.Utilization{Gpu: 90, Memory: 40}, 7<<30
				f.reasons = 4 // always at the power limit
				f.mJ = uint64(at.Milliseconds()) * 500
				f.celsius = 40 + uint32(at/time.Second)
			})
		}
	}, 0, 1)
	got := p.part(5*time.Second, 15*time.Second+50*time.Millisecond)
	if got.Doubt != "" || got.Env[profiler.EnvThrottle] != "" || got.Env[EnvPowerCap] != "1" {
		t.Errorf("the power limit alone: %+v", got)
	}
	if math.Abs(got.EnergyJoules-10050) > 1e-6 || math.Abs(got.AvgWatts-1000) > 1e-6 {
		t.Errorf("%g J, %g W, want 2 devices x 500 W x 10.05 s", got.EnergyJoules, got.AvgWatts)
	}
	for key, want := range map[string]string{EnvUtil: "0.9", EnvMemUtil: "0.4", EnvSMClock: "1.98e+09", EnvMemClock: "2.619e+09",
		EnvMemUsed: strconv.Itoa(7 << 30), EnvTemperature: "55"} {
		if got.Env[key] != want {
			t.Errorf("%s is %q, want %q", key, got.Env[key], want)
		}
	}
	if !strings.Contains(got.Env[profiler.EnvWarning], "lists no processes") {
		t.Errorf("a driver that lists no process, warning %q", got.Env[profiler.EnvWarning])
	}
	if short := p.part(5*time.Second, 5900*time.Millisecond); short.EnergyJoules != 0 || short.AvgWatts != 0 ||
		!strings.Contains(short.Env[profiler.EnvWarning], "energy was not measured: 0.9 s") {
		t.Errorf("0.9 s: %+v", short)
	}
	if all := p.judge(time.Time{}, time.Time{}); all.EnergyJoules != 0 || all.Env[EnvTemperature] != "60" || all.Env[profiler.EnvWarning] != "" {
		t.Errorf("without a timed part: %+v", all)
	}
}

// TestEnergyWithoutCounter: without an energy counter, energy is power times time, and power is read in every
// sample.
func TestEnergyWithoutCounter(t *testing.T) {
	r := newMockMachine(t, dgx(a100SXM))
	r.gpus[0].unsupported["energy"] = true
	p := r.record(t, t.TempDir(), 10*time.Second, func(at time.Duration) {
		r.gpus[0].set(func(f *fakeGPU) { f.mW = 200_000 + uint32(at.Milliseconds())*20 })
	}, 0)
	got := p.part(2*time.Second, 8*time.Second)
	if want := 6 * 300.0; math.Abs(got.EnergyJoules-want) > 1e-6*want { // 240 W to 360 W
		t.Errorf("%g J, want %g", got.EnergyJoules, want)
	}
	if n := r.gpus[0].calls["energy"]; n != 1 {
		t.Errorf("%d reads of an energy counter that is not supported", n)
	}
	r.gpus[0].unsupported["power"] = true
	p = r.record(t, t.TempDir(), time.Second, func(time.Duration) {}, 0)
	if got := p.part(0, time.Second); got.EnergyJoules != 0 || got.AvgWatts != 0 {
		t.Errorf("without either: %+v", got)
	}
}

func TestThrottle(t *testing.T) {
	for _, tc := range []struct {
		bit   int
		text  string
		doubt bool
	}{
		{0, "", false}, {1, "", false}, {2, "", false}, {3, "hardware slowdown", true}, {4, "sync boost", true},
		{5, "software thermal", true}, {6, "hardware thermal", true}, {7, "power brake", true}, {8, "", false},
	} {
		r := newMockMachine(t, dgx(h100))
		p := r.record(t, t.TempDir(), 20*time.Second, func(at time.Duration) {
			r.gpus[6].set(func(f *fakeGPU) {
				f.reasons = 0
				if at >= 8*time.Second && at < 9*time.Second {
					f.reasons = 1 << tc.bit
				}
			})
		}, 0, 6)
		got := p.part(5*time.Second, 15*time.Second)
		if tc.doubt != (got.Doubt != "") || !strings.Contains(got.Env[profiler.EnvThrottle], tc.text) {
			t.Errorf("bit %d: %+v", tc.bit, got)
		}
		if tc.doubt && (!strings.Contains(got.Doubt, "GPU 6") || !strings.Contains(got.Doubt, "10 % of samples")) {
			t.Errorf("bit %d: doubt %q", tc.bit, got.Doubt)
		}
		if got := p.part(10*time.Second, 15*time.Second); got.Doubt != "" || got.Env[profiler.EnvThrottle] != "" {
			t.Errorf("bit %d, outside the timed part: %+v", tc.bit, got)
		}
	}
}

// TestBriefThrottleIsNoted: one sample in more than a hundred gives a note and no doubt.
func TestBriefThrottleIsNoted(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	p := r.record(t, t.TempDir(), 30*time.Second, func(at time.Duration) {
		r.gpus[0].set(func(f *fakeGPU) { f.reasons = 0 })
		if at == 20*time.Second {
			r.gpus[0].set(func(f *fakeGPU) { f.reasons = 8 })
		}
	}, 0)
	if got := p.part(0, 30*time.Second); got.Doubt != "" || !strings.Contains(got.Env[profiler.EnvThrottle], "hardware slowdown") {
		t.Errorf("got %+v", got)
	}
}

func TestSharing(t *testing.T) {
	root := fakeProc{
		{PID: 100, Parent: 50, Group: 100, Name: "python3"}, {PID: 101, Parent: 100, Group: 101, Name: "rank 0"},
		{PID: 900, Parent: 1, Group: 900, Name: "other (job)"},
	}.write(t)
	r := newMockMachine(t, dgx(h100))
	p := r.record(t, root, 20*time.Second, func(at time.Duration) {
		r.gpus[0].set(func(f *fakeGPU) { f.pids = []uint32{101} })
		r.gpus[1].set(func(f *fakeGPU) {
			f.pids = []uint32{100}
			if at >= 10*time.Second && at < 12*time.Second {
				f.pids = append(f.pids, 900)
			}
		})
		r.gpus[2].set(func(f *fakeGPU) { f.pids = []uint32{100, 77777} }) // a process that just ended
	}, 0, 1, 2)
	got := p.part(5*time.Second, 15*time.Second)
	if got.Doubt != "GPU 1 was used by 900 (other (job))" || got.Env[profiler.EnvShared] != got.Doubt || got.Env[profiler.EnvWarning] != "" {
		t.Errorf("got %+v", got)
	}
	for _, part := range [][2]time.Duration{{2 * time.Second, 8 * time.Second}, {13 * time.Second, 18 * time.Second}} {
		if got := p.part(part[0], part[1]); got.Doubt != "" {
			t.Errorf("%v: %+v", part, got)
		}
	}
}

// TestSharingInAContainer: inside a container the driver may list processes by ids of the host. One such
// process may be the measured one, two cannot.
func TestSharingInAContainer(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	p := r.record(t, t.TempDir(), 5*time.Second, func(time.Duration) {
		r.gpus[0].set(func(f *fakeGPU) { f.pids = []uint32{40000} })
		r.gpus[1].set(func(f *fakeGPU) { f.pids = []uint32{40001, 50000} })
	}, 0, 1)
	if got := p.part(time.Second, 4*time.Second); !strings.HasPrefix(got.Doubt, "GPU 1 was used by 2 processes") {
		t.Errorf("got %+v", got)
	}
}

func TestFaults(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	p := r.record(t, t.TempDir(), 10*time.Second, func(at time.Duration) {
		if at != 3*time.Second {
			return
		}
		r.gpus[0].set(func(f *fakeGPU) { f.uncorrected = 2 })
		r.gpus[1].set(func(f *fakeGPU) { f.ret = nvml.ERROR_GPU_IS_LOST })
		r.mu.Lock()
		defer r.mu.Unlock()
		for range 3 {
			r.events = append(r.events, nvml.EventData{Device: r.devices[4], EventType: nvml.EventTypeXidCriticalError, EventData: 79})
		}
		r.events = append(r.events, nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 7})
	}, 0, 1, 4)
	got := p.part(5*time.Second, 9*time.Second)
	for _, want := range []string{"2 uncorrected memory errors on GPU 0", "GPU 1 stopped responding: GPU is lost: it has fallen off the bus; restart the machine",
		"Xid 79 (GPU has fallen off the bus) on GPU 4", "Xid 7"} {
		if !strings.Contains(got.Doubt+";", want+";") || !strings.Contains(got.Env[profiler.EnvWarning], want) {
			t.Errorf("doubt %q, warning %q lack %q", got.Doubt, got.Env[profiler.EnvWarning], want)
		}
	}
	if strings.Count(got.Doubt, "Xid 79") != 1 {
		t.Errorf("an event reported several times: %q", got.Doubt)
	}
	reads := r.gpus[1].calls["util"]
	p.sample(someTime.Add(time.Minute), true)
	if r.gpus[1].calls["util"] != reads {
		t.Error("a lost device is still read")
	}
}

// TestOldFaultsDoNotCount: errors before the recording do not count.
func TestOldFaultsDoNotCount(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	r.gpus[0].uncorrected = 5
	p := r.record(t, t.TempDir(), 5*time.Second, func(time.Duration) {}, 0)
	if got := p.part(time.Second, 4*time.Second); got.Doubt != "" {
		t.Errorf("got %+v", got)
	}
}

// TestFailingCallsAreDropped: a call that fails sometimes is repeated, one that always fails is dropped.
func TestFailingCallsAreDropped(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	p := r.record(t, t.TempDir(), 10*time.Second, func(at time.Duration) {
		r.gpus[0].set(func(f *fakeGPU) {
			f.ret = nvml.SUCCESS
			if at%(300*time.Millisecond) == 0 {
				f.ret = nvml.ERROR_UNKNOWN
			}
		})
		r.gpus[1].set(func(f *fakeGPU) { f.ret = nvml.ERROR_TIMEOUT })
	}, 0, 1)
	got := p.part(time.Second, 9*time.Second)
	if got.Env[EnvSMClock] != "1.98e+09" {
		t.Errorf("the device that fails now and then: %+v", got)
	}
	if n := r.gpus[1].calls["util"]; n != maxFailed {
		t.Errorf("a call that always fails was made %d times, want %d", n, maxFailed)
	}
}

// TestCallsPerSample: four calls per sample, six more per second, and those for events.
func TestCallsPerSample(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	s := r.source(t, 0)
	for slow, want := range map[bool]int64{false: 4, true: 10} {
		before := r.calls.Load()
		s.read(0, someTime, slow)
		if got := r.calls.Load() - before; got != want {
			t.Errorf("slow=%v: %d calls, want %d", slow, got, want)
		}
	}
}

func TestUnknownDevice(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	w := &Watcher{period: defaultPeriod, monitor: &nvmlMonitor{api: func() nvml.Interface { return r }}}
	got := w.Watch([]int{8}, nil)(time.Now(), time.Now())
	if !strings.Contains(got.Env[profiler.EnvWarning], "no GPU 8") || got.Doubt != "" {
		t.Errorf("got %+v", got)
	}
	w.Close()
	if n := r.inits.Load(); n != 0 {
		t.Errorf("NVML was initialised %d times more than shut down", n)
	}
}

// TestWatchGPUs tests the whole watcher with the real clock.
func TestWatchGPUs(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	for _, f := range r.gpus {
		f.set(func(f *fakeGPU) { f.pids, f.reasons = []uint32{uint32(os.Getpid())}, 64 }) // this process is not a measured one
	}
	begin := time.Now()
	for i, d := range r.devices { // each draws 100 W
		d.GetTotalEnergyConsumptionFunc = fixed(r, r.gpus[i], "energy", func() uint64 {
			return uint64(time.Since(begin).Milliseconds()) * 100
		})
	}
	w := &Watcher{period: 10 * time.Millisecond, monitor: &nvmlMonitor{api: func() nvml.Interface { return r }}}
	watch := func() error {
		stop := w.Watch([]int{0, 1, 2, 3, 4, 5, 6, 7}, nil)
		time.Sleep(200 * time.Millisecond)
		from := time.Now()
		time.Sleep(1050 * time.Millisecond)
		to := time.Now()
		got := stop(from, to)
		if !strings.Contains(got.Doubt, "hardware thermal slowdown on 8 GPUs") || !strings.Contains(got.Doubt, "GPU 7 was used by") {
			t.Errorf("doubt %q", got.Doubt)
		}
		if again := stop(from, to); again.Doubt != got.Doubt {
			t.Errorf("reported again: %q", again.Doubt)
		}
		if want := 8 * 100 * to.Sub(from).Seconds(); math.Abs(got.EnergyJoules-want) > 0.25*want {
			return fmt.Errorf("%g J, want about %g", got.EnergyJoules, want)
		}
		return nil
	}
	for range 2 {
		spectest.Retry(t, watch)
	}
	w.Close()
	if n := r.inits.Load(); n != 0 {
		t.Errorf("NVML was initialised %d times more than shut down", n)
	}
}
