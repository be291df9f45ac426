package scheduling

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// Cell is a kind of workload on a cluster. The zero value of a field of drawn workloads is
// its default.
type Cell struct {
	Name string
	// Workload is recorded jobs, FILE[:FORMAT], or synthetic:OPTIONS; "" = drawn by Draw.
	Workload string
	Draw     Draw
	Cluster  string // in the syntax of --cluster
	// UnknownSteps sets option steps=unknown of policies that have it.
	UnknownSteps bool
	// Settings are flags of pacer simulate by name. Cells drawn by Draw have the defaults of a
	// rubick truth.
	Settings map[string]string
	// VariantOf names the cell that this one has the jobs of; "" = none.
	VariantOf string
	// TimeScale multiplies all times of drawn jobs and the start cost; 0 = 1.
	TimeScale float64
}

// Draw describes drawn workloads, as the options of synthetic workloads in pacer simulate.
type Draw struct {
	Models     string  // models=, or none for jobs without a model that run for a duration
	Jobs       int     // jobs=
	Load       float64 // of load=, device-seconds asked for per second and device; 0 = none
	Arrivals   string  // arrivals=
	Sizes      string  // sizes=
	Durations  string  // durations=
	MedianSec  float64 // median-s=
	Sigma      float64 // sigma=
	Alpha      float64 // alpha=
	MaxSec     float64 // max-s=
	Resample   string  // resample=
	Guaranteed float64 // guaranteed=
}

// Defaults of cells with drawn jobs. The models are those of Rubick's workloads.
const (
	defaultCluster   = "8x8xA800"
	defaultModels    = "measured:bert+gpt2+llama30+llama7+roberta+t5+vit"
	defaultTruth     = "rubick:measured"
	defaultBelief    = "fitted:rubick"
	defaultStartCost = 260 // seconds, that of simulations with a rubick truth
	noModels         = "none"
	arriveOnce       = "once" // all jobs at time 0, whatever the load
)

// defaultDraw is the draw of a cell without keys.
var defaultDraw = Draw{Models: defaultModels, Jobs: 200, Load: 0.9, Arrivals: "poisson", Sizes: "mixed",
	Durations: "log-normal", MedianSec: 900, Guaranteed: 0.1}

// Drawn reports whether the jobs of c depend on the seed.
func (c *Cell) Drawn() bool {
	return c.Workload == "" || study.Workload{Jobs: c.Workload}.Synthetic()
}

// Jobs returns the workload in the syntax of pacer simulate.
func (c *Cell) Jobs() (string, error) {
	if c.Workload != "" {
		return c.Workload, nil
	}
	d, out := c.Draw, []string{}
	add := func(key string, given bool, value any) {
		if given {
			out = append(out, fmt.Sprintf("%s=%v", key, value))
		}
	}
	add("models", d.Models != noModels, d.Models)
	add("jobs", true, d.Jobs)
	if d.Load > 0 && d.Arrivals != arriveOnce {
		cl, err := catalog.Cluster(c.Cluster)
		if err != nil {
			return "", fmt.Errorf("cell %s: %w", c.Name, err)
		}
		add("load", true, fmt.Sprintf("%gx%d", d.Load, cl.Devices()))
	}
	add("arrivals", true, d.Arrivals)
	add("sizes", true, d.Sizes)
	add("resample", d.Resample != "", d.Resample)
	add("durations", d.Resample == "", d.Durations)
	add("median-s", d.MedianSec > 0, d.MedianSec)
	add("sigma", d.Sigma > 0, d.Sigma)
	add("alpha", d.Alpha > 0, d.Alpha)
	add("max-s", d.MaxSec > 0, d.MaxSec)
	add("guaranteed", d.Guaranteed > 0, d.Guaranteed)
	add("time-scale", c.scale() != 1, c.scale())
	return "synthetic:" + strings.Join(out, ","), nil
}

// scale returns TimeScale, 1 where it is not set.
func (c *Cell) scale() float64 {
	if c.TimeScale == 0 {
		return 1
	}
	return c.TimeScale
}

// settings returns the flags of pacer simulate.
func (c *Cell) settings() map[string]string {
	out := map[string]string{}
	if c.Workload == "" && c.Draw.Models != noModels {
		out["truth"], out["belief"] = defaultTruth, defaultBelief
	}
	if c.Workload == "" && c.Settings["costs"] == "" {
		out["start-cost"] = strconv.Itoa(defaultStartCost)
	}
	maps.Copy(out, c.Settings)
	if sec, err := strconv.ParseFloat(out["start-cost"], 64); err == nil {
		out["start-cost"] = strconv.FormatFloat(sec*c.scale(), 'g', -1, 64)
	}
	return out
}
