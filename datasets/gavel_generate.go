package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// GavelOptions says what jobs to generate.
type GavelOptions struct {
	Seed    uint64
	Jobs    int     // how many
	PerHour float64 // mean arrivals, above 0
	Wide    bool    // of 1, 2, 4 and 8 devices; else all of one
}

// GenerateGavel draws jobs as Gavel's simulator does (scheduler/utils.py at commit
// c4fa400), with other random numbers: run times on V100 of 60 s x 10^U(1.5, 3) for
// four in five and 60 s x 10^U(3, 4) for the others, whatever their devices; one
// device for 70 in 100, 2, 4 and 8 for 10, 15 and 5; types evenly, of those
// that the table has on V100 with so many devices; Poisson arrivals, the first at 0.
func GenerateGavel(table []spec.Measurement, o GavelOptions) ([]spec.Job, error) {
	if o.Jobs < 1 || !(o.PerHour > 0) || math.IsInf(o.PerHour, 0) {
		return nil, fmt.Errorf("datasets: %d jobs at %g an hour, want some of both", o.Jobs, o.PerHour)
	}
	types := gavelTypes(table)
	for _, n := range gavelSizes {
		if len(types[n]) == 0 && (o.Wide || n == 1) {
			return nil, fmt.Errorf("datasets: the table has nothing on %d V100", n)
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	jobs := make([]spec.Job, o.Jobs)
	at := 0.0
	for i := range jobs {
		devices := 1
		if u := rng.Float64(); o.Wide {
			devices = gavelSize(u)
		}
		sec := 60 * math.Pow(10, 1.5+1.5*rng.Float64())
		if rng.Float64() >= 0.8 {
			sec = 60 * math.Pow(10, 3+rng.Float64())
		}
		m := types[devices][rng.IntN(len(types[devices]))]
		jobs[i] = spec.Job{
			ID: spec.JobID(fmt.Sprint(i)), Submit: time.Duration(at * float64(time.Second)), Model: m.Config.Model, Devices: devices,
			Plan: m.Config.Plan, Steps: sec / m.StepSec[0],
		}
		at += rng.ExpFloat64() * 3600 / o.PerHour
	}
	return jobs, nil
}

var gavelSizes = []int{1, 2, 4, 8}

// gavelSize returns the devices that u in [0, 1) falls on.
func gavelSize(u float64) int {
	for i, until := range []float64{0.7, 0.8, 0.95} {
		if u < until {
			return gavelSizes[i]
		}
	}
	return gavelSizes[3]
}

// gavelTypes returns what runs on V100, by devices, once each by name.
func gavelTypes(table []spec.Measurement) map[int][]spec.Measurement {
	out := map[int][]spec.Measurement{}
	for _, m := range table {
		if n := m.Config.Plan.DP; m.Outcome == spec.OK && strings.HasPrefix(m.Config.Accelerator.Name, "V100") {
			out[n] = append(out[n], m)
		}
	}
	name := func(m spec.Measurement) string { return m.Config.Model.Name }
	for n, rows := range out {
		slices.SortStableFunc(rows, func(a, b spec.Measurement) int { return strings.Compare(name(a), name(b)) })
		out[n] = slices.CompactFunc(rows, func(a, b spec.Measurement) bool { return name(a) == name(b) })
	}
	return out
}
