package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// OnesOptions configure GenerateOnes.
type OnesOptions struct {
	Seed   uint64
	Jobs   int     // how many; 400 in the artifact
	GapSec float64 // mean between two submissions; 30 in the artifact
}

// onesTask is a task of the artifact's jobs that Pollux measured too.
type onesTask struct {
	name    string
	app     string // of Pollux
	samples []int  // of the data sets, all equally frequent
	local   int    // samples a step and device
	devices int
	passes  [2]float64 // over the data set until the job stops, range
}

// onesTasks are five of ten equally frequent tasks in the artifact kurisusnowdeng/ones_sc21 at
// commit 8535358: those with networks that Pollux measured. passes are from the artifact's training
// history with the same batches, where jobs stop at a target accuracy.
var onesTasks = []onesTask{
	{"resnet50-imagenet", "imagenet", []int{10000, 20000}, 32, 16, [2]float64{11, 58}},
	{"resnet18-cifar10", "cifar10", []int{20000, 40000}, 256, 4, [2]float64{23, 38}},
	{"bert-cola", "bert", []int{5000, 8000}, 16, 2, [2]float64{5, 6}},
	{"bert-mrpc", "bert", []int{3600}, 16, 2, [2]float64{5, 6}},
	{"bert-sst2", "bert", []int{10000, 20000}, 32, 8, [2]float64{5, 6}},
}

// polluxSamples is the number of samples per epoch of an application in Pollux's tables: ImageNet,
// CIFAR-10, and windows of SQuAD.
var polluxSamples = map[string]float64{"imagenet": 1281167, "cifar10": 50000, "bert": 88641}

// ParseOnesOptions parses JOBS[,gap-s=SECONDS].
func ParseOnesOptions(text string) (OnesOptions, error) {
	o := OnesOptions{GapSec: 30}
	jobs, gap, given := strings.Cut(text, ",")
	var err error
	if o.Jobs, err = strconv.Atoi(jobs); err != nil {
		return o, fmt.Errorf("datasets: ones=%s: %q is not a number of jobs", text, jobs)
	}
	if given {
		number, ok := strings.CutPrefix(gap, "gap-s=")
		if o.GapSec, err = strconv.ParseFloat(number, 64); !ok || err != nil {
			return o, fmt.Errorf("datasets: ones=%s: %q is not gap-s=SECONDS", text, gap)
		}
	}
	return o, nil
}

// GenerateOnes draws jobs like those of the trace of ONES's artifact, limited to networks that
// Pollux measured: tasks and data sets uniformly, Poisson arrivals. The work of a job counts in
// epochs of Pollux's data sets, so that batches have the same statistical efficiency.
func GenerateOnes(o OnesOptions) ([]spec.Job, error) {
	if o.Jobs < 1 || o.Jobs > 1<<20 || !(o.GapSec > 0 && o.GapSec < 1e6) {
		return nil, fmt.Errorf("datasets: ones: %d jobs every %g s, want 1 to %d, and a gap above 0 and below 1e6 s", o.Jobs, o.GapSec, 1<<20)
	}
	kinds, arrivals := stats.Stream(o.Seed, "ones/kinds"), stats.Stream(o.Seed, "ones/arrivals")
	jobs := make([]spec.Job, o.Jobs)
	at := 0.0
	for i := range jobs {
		t := &onesTasks[kinds.IntN(len(onesTasks))]
		samples := float64(t.samples[kinds.IntN(len(t.samples))])
		passes := t.passes[0] + (t.passes[1]-t.passes[0])*kinds.Float64()
		model, ok := datasets.SiaModel(t.app)
		if !ok {
			return nil, fmt.Errorf("datasets: ones: no model of %s", t.app)
		}
		jobs[i] = spec.Job{
			ID: spec.JobID(fmt.Sprintf("%s-%d", t.name, i)), Submit: time.Duration(at * float64(time.Second)), Model: model,
			Devices: t.devices, GlobalBatch: t.local * t.devices, Epochs: passes * samples / polluxSamples[t.app],
		}
		at += arrivals.ExpFloat64() * o.GapSec
	}
	return jobs, nil
}
