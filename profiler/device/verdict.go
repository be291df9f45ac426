package device

import (
	"strings"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// Keys of Watched.Env besides those of package profiler. Means and maxima are over the timed part
// and all devices.
const (
	EnvUtil        = "gpu_util"     // mean share of time with a kernel running, 0..1
	EnvMemUtil     = "gpu_mem_util" // mean share of time device memory was in use, 0..1
	EnvMemUsed     = "gpu_mem_used" // bytes of a device in use at most, all processes and the driver together
	EnvSMClock     = "sm_clock_hz"  // mean
	EnvMemClock    = "mem_clock_hz" // mean
	EnvTemperature = "temp_c"       // largest, °C
	EnvPowerCap    = "power_cap"    // share of samples in which the power limit held clocks back, 0..1

	EnvCPUUsed   = "cpu_used"     // CPUs the measured processes kept busy, mean
	EnvCPUOthers = "cpu_others"   // CPUs other processes kept busy, mean
	EnvCPUSteal  = "cpu_steal"    // share of CPU time the hypervisor gave to others, 0..1
	EnvCPUClock  = "cpu_clock_hz" // mean clock of the first CPUs
)

// A verdict collects the parts of a Watched.
type verdict struct {
	env    map[string]string
	doubts []string
}

func newVerdict() *verdict { return &verdict{env: map[string]string{}} }

// note adds text to an entry of the environment.
func (v *verdict) note(key, text string) {
	if have := v.env[key]; have != "" {
		text = have + "; " + text
	}
	v.env[key] = text
}

// doubt adds a reason to doubt the step times, and notes it.
func (v *verdict) doubt(key, text string) {
	v.note(key, text)
	v.doubts = append(v.doubts, text)
}

func (v *verdict) watched() Watched {
	return Watched{Env: v.env, Doubt: strings.Join(v.doubts, "; ")}
}

// warn adds a warning to w.
func (w *Watched) warn(text string) {
	v := verdict{env: w.Env}
	v.note(profiler.EnvWarning, text)
}

// unwatched returns a Watched without data, and why.
func unwatched(why string) Watched {
	w := Watched{Env: map[string]string{}}
	w.warn("devices were not watched: " + why)
	return w
}

// window returns the times to judge, and whether they are those given. Without valid times it is
// all time.
func window(from, to time.Time) (begin, end time.Time, timed bool) {
	if from.IsZero() || to.IsZero() || !to.After(from) {
		return time.Unix(0, 0), time.Unix(1<<40, 0), false
	}
	return from, to, true
}
