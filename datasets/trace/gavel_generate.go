package trace

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/mathext/prng"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// GavelOptions configure GenerateGavel.
type GavelOptions struct {
	Seed    uint32
	Jobs    int     // how many
	PerHour float64 // mean arrivals, above 0; +Inf = all at once
	Wide    bool    // of 1, 2, 4 and 8 devices; else all of one
}

// Each random quantity in Gavel's simulator has its own generator, seeded with the run's seed plus
// one of these (scheduler/scheduler.py at commit c4fa400).
const (
	gavelJobSeed     = 2
	gavelArrivalSeed = 3
)

// GenerateGavel draws the jobs that Gavel's simulator draws with the same seed (scheduler/utils.py,
// generate_job). 70 % have one device; 10, 15 and 5 % have 2, 4 and 8. Run times on V100 are 60 s x
// 10^U(1.5, 3) for four in five jobs and 60 s x 10^U(3, 4) for the others, whatever their devices.
// Types are uniform among those that rows have on V100, with several devices if the job has
// several. Arrivals are Poisson, the first at 0.
func GenerateGavel(rows []spec.Measurement, o GavelOptions) ([]spec.Job, error) {
	if o.Jobs < 1 || !(o.PerHour > 0) {
		return nil, fmt.Errorf("datasets: %d jobs at %g an hour, want some of both", o.Jobs, o.PerHour)
	}
	on := gavelOnV100(rows)
	draw, arrivals := newPythonRandom(o.Seed+gavelJobSeed), newPythonRandom(o.Seed+gavelArrivalSeed)
	jobs := make([]spec.Job, o.Jobs)
	at := 0.0
	for i := range jobs {
		devices := gavelSize(draw.float())
		if !o.Wide {
			devices = 1
		}
		var sec float64
		if draw.float() >= 0.8 {
			sec = 60 * math.Pow(10, draw.uniform(3, 4))
		} else {
			sec = 60 * math.Pow(10, draw.uniform(1.5, 3))
		}
		kind := draw.intN(len(gavelKinds))
		for devices > 1 && kind >= gavelWideKinds {
			kind = draw.intN(len(gavelKinds))
		}
		m, ok := on[gavelOn{gavelKinds[kind], devices}]
		if !ok {
			return nil, fmt.Errorf("datasets: the table has no %s on %d V100", gavelKinds[kind], devices)
		}
		jobs[i] = spec.Job{
			ID: spec.JobID(fmt.Sprint(i)), Submit: time.Duration(at * float64(time.Second)), Model: m.Config.Model, Devices: devices,
			Plan: m.Config.Plan, Steps: sec / m.StepSec[0],
		}
		at += -math.Log(1-arrivals.float()) * 3600 / o.PerHour
	}
	return jobs, nil
}

// gavelKinds lists the job types in drawing order (job_table.py). The first gavelWideKinds of them
// run on several devices.
var (
	gavelKinds = slices.Concat(
		gavelBatches("ResNet-18", 16, 32, 64, 128, 256), gavelBatches("ResNet-50", 16, 32, 64, 128),
		gavelBatches("Transformer", 16, 32, 64, 128, 256), gavelBatches("LM", 5, 10, 20, 40, 80),
		gavelBatches("Recommendation", 512, 1024, 2048, 4096, 8192), []string{"A3C", "CycleGAN"})
	gavelWideKinds = slices.Index(gavelKinds, "Recommendation (batch size 512)")
)

func gavelBatches(network string, batches ...int) []string {
	out := make([]string, len(batches))
	for i, b := range batches {
		out[i] = fmt.Sprintf("%s (batch size %d)", network, b)
	}
	return out
}

// gavelSize returns the number of devices for u in [0, 1).
func gavelSize(u float64) int {
	switch {
	case u < 0.7:
		return 1
	case u < 0.8:
		return 2
	case u < 0.95:
		return 4
	}
	return 8
}

// gavelOn is a job type and a number of devices.
type gavelOn struct {
	kind    string
	devices int
}

// gavelOnV100 returns the first row of each on V100: the consolidated one.
func gavelOnV100(rows []spec.Measurement) map[gavelOn]spec.Measurement {
	out := map[gavelOn]spec.Measurement{}
	for _, m := range rows {
		if m.Outcome != spec.OK || !strings.HasPrefix(m.Config.Accelerator.Name, "V100") {
			continue
		}
		key := gavelOn{m.Config.Model.Name, m.Config.Plan.DP}
		if _, twice := out[key]; !twice {
			out[key] = m
		}
	}
	return out
}

// pythonRandom draws the numbers of CPython's random.Random, a Mersenne twister.
type pythonRandom struct{ *prng.MT19937 }

func newPythonRandom(seed uint32) pythonRandom {
	p := pythonRandom{prng.NewMT19937()}
	p.SeedFromKeys([]uint32{seed})
	return p
}

// float is random(), in [0, 1).
func (p pythonRandom) float() float64 {
	high, low := p.Uint32()>>5, p.Uint32()>>6
	return (float64(high)*(1<<26) + float64(low)) / (1 << 53)
}

func (p pythonRandom) uniform(lo, hi float64) float64 { return lo + (hi-lo)*p.float() }

// intN is randrange(n): the first number below n, with as many bits as n.
func (p pythonRandom) intN(n int) int {
	for {
		if i := int(p.Uint32() >> (32 - bits.Len(uint(n)))); i < n {
			return i
		}
	}
}
