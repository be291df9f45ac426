//go:build cgo && linux

package device

import (
	"os"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// BenchmarkGPUSample takes one sample of eight GPUs. The mock returns at once, so this is the cost without the
// driver; calls/op times the duration of a call to the driver comes in addition.
func BenchmarkGPUSample(b *testing.B) {
	for _, slow := range []bool{false, true} {
		b.Run(map[bool]string{false: "slow=no/gpus=8", true: "slow=yes/gpus=8"}[slow], func(b *testing.B) {
			r, devices := newBenchMachine(b)
			p := newGPUProbe(r.source(b, devices...), devices, newMeasuredProcesses("/", os.Getpid))
			at, before := time.Now(), r.calls.Load()
			for b.Loop() {
				at = at.Add(defaultPeriod)
				p.sample(at, slow)
			}
			b.ReportMetric(float64(r.calls.Load()-before)/float64(b.N), "calls/op")
		})
	}
}

// BenchmarkWatchGPUs watches eight GPUs at 10 Hz, with the mock.
func BenchmarkWatchGPUs(b *testing.B) {
	r, devices := newBenchMachine(b)
	before := r.calls.Load()
	begin := time.Now()
	benchWatch(b, &Watcher{period: defaultPeriod, monitor: &nvmlMonitor{api: func() nvml.Interface { return r }}}, devices)
	b.ReportMetric(float64(r.calls.Load()-before)/time.Since(begin).Seconds(), "calls/s")
}

func newBenchMachine(b *testing.B) (*mockMachine, []int) {
	b.Helper()
	r := newMockMachine(b, dgx(h100))
	var devices []int
	for i, f := range r.gpus {
		f.pids = []uint32{uint32(os.Getpid())}
		devices = append(devices, i)
	}
	return r, devices
}
