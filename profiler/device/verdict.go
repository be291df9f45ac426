package device

import (
	"strings"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// Keys of Watched.Env, in addition to those of package profiler. Means and maxima are over the timed part and
// all devices.
const (
	EnvUtil        = "gpu_util"     // mean share of time with a kernel running, 0..1
	EnvMemUtil     = "gpu_mem_util" // mean share of time that device memory was in use, 0..1
	EnvMemUsed     = "gpu_mem_used" // largest memory use of a device in bytes, all processes and the driver together
	EnvSMClock     = "sm_clock_hz"  // mean
	EnvMemClock    = "mem_clock_hz" // mean
	EnvTemperature = "temp_c"       // largest, °C
	EnvPowerCap    = "power_cap"    // share of samples in which the power limit reduced clocks, 0..1

	EnvCPUUsed   = "cpu_used"     // mean number of CPUs that the measured processes kept busy
	EnvCPUOthers = "cpu_others"   // mean number of CPUs that other processes kept busy
	EnvCPUSteal  = "cpu_steal"    // share of CPU time that the hypervisor gave to other machines, 0..1
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

// doubt adds a reason to doubt the step times, and notes it in the environment.
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

// unwatched returns a Watched without data, with the reason as a warning.
func unwatched(why string) Watched {
	w := Watched{Env: map[string]string{}}
	w.warn("devices were not watched: " + why)
	return w
}

// window returns the times to judge, and whether they are the given ones. Invalid times are replaced by all
// time.
func window(from, to time.Time) (begin, end time.Time, timed bool) {
	if from.IsZero() || to.IsZero() || !to.After(from) {
		return time.Unix(0, 0), time.Unix(1<<40, 0), false
	}
	return from, to, true
}
