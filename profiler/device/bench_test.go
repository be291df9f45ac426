package device

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// benchWatch reports the share of a core that watching at 10 Hz takes, including everything else in this
// process, and the part of it that sampling takes.
func benchWatch(b *testing.B, w *Watcher, devices []int) {
	b.Helper()
	const length = 5 * time.Second
	for b.Loop() {
		before, begin := processCPU(b), time.Now()
		stop := w.Watch(devices, os.Getpid)
		time.Sleep(length)
		used, took := processCPU(b)-before, time.Since(begin)
		if got := stop(begin, time.Now()); len(got.Env) == 0 {
			b.Fatalf("nothing was seen: %+v", got)
		}
		b.ReportMetric(used.Seconds()/took.Seconds(), "core-share")
	}
	w.Close()
}

func processCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkWatch(b *testing.B) {
	b.Run("kind=cpu", func(b *testing.B) {
		n := thisCPU().Usable()
		devices := make([]int, n)
		benchWatch(b, NewWatcher(WatchOptions{CPU: true}), devices)
	})
}

// BenchmarkCPUSample takes one sample of this machine's CPU.
func BenchmarkCPUSample(b *testing.B) {
	p, err := cpuMonitor{root: "/", threads: 1}.open([]int{0}, os.Getpid)
	if err != nil {
		b.Skip(err)
	}
	for _, slow := range []bool{false, true} {
		b.Run(map[bool]string{false: "slow=no", true: "slow=yes"}[slow], func(b *testing.B) {
			for b.Loop() {
				p.sample(time.Now(), slow)
			}
		})
	}
}
