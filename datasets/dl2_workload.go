package datasets

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// dl2Trace describes the simulator of these jobs.
var dl2Trace = Trace{
	License: "none stated",
	URL:     "https://github.com/pengyanghua/DL2",
	Commit:  "2e54920d2100bff2e14e246c423419bbd326c55b",
}

// dl2Kind is a job type of the simulator of DL2 (Peng et al., DL2, TPDS 2021; from its code).
type dl2Kind struct {
	model  string
	batch  int     // samples per step, that of the measurements
	epoch  int     // samples per epoch in the simulator
	length float64 // epochs of a job, as a share of the workload's most
	onCPUs bool    // its workers need no GPU
}

// dl2Kinds is indexed by the number of the type, less one.
var dl2Kinds = []dl2Kind{
	{"resnet-50", 32, 115, 0.30, false},
	{"vgg-16", 32, 115, 0.96, false},
	{"resnext-110", 128, 390, 0.05, false},
	{"inception-bn", 128, 120, 0.54, false},
	{"seq2seq", 64, 780, 0.95, false},
	{"cnn-text-classification", 50, 193, 0.46, true},
	{"dssm", 256, 349, 0.33, true},
	{"wlm", 160, 165, 0.23, false},
}

// dl2CPUs is the host need of a worker, with or without GPU, and of a parameter server.
var dl2CPUs = spec.Host{MilliCPUs: 2000}

const (
	dl2Slot        = 20 * time.Minute
	dl2TestbedSlot = 5 * time.Minute
)

// job returns a job of the type that trains for epochs. Its steps follow from its samples: epochs
// are the simulator's, not Job.Epochs. It starts with one worker and one parameter server.
func (k *dl2Kind) job(id string, submit time.Duration, epochs int) spec.Job {
	j := spec.Job{
		ID: spec.JobID(id), Submit: submit, Model: spec.Model{Name: k.model, Kind: spec.Opaque},
		GlobalBatch: k.batch, Devices: 1, Host: dl2CPUs, ServerHost: dl2CPUs,
		Steps: float64(epochs) * float64(k.epoch) / float64(k.batch),
	}
	if k.onCPUs {
		j.Devices = 0
	}
	j.Plan = j.ParamServerPlan(1, 1)
	return j
}

// readDL2Workload reads the jobs of one trace of a table. in.part is CONFIG/TRACE, by the columns
// config and trace, "" = the only one. A slot is 20 minutes, or 5 for configurations whose name
// begins with testbed.
func readDL2Workload(in *input) iter.Seq2[spec.Job, error] {
	columns := []string{"config", "trace", "job", "arrival_slot", "type", "model", "epochs"}
	return func(yield func(spec.Job, error) bool) {
		ids, want := jobIDs{column: "job"}, in.part
		var seen []string
		for rec, err := range readCSV(in.reader, in.name, columns...) {
			if in.ctx.Err() != nil {
				yield(spec.Job{}, in.ctx.Err())
				return
			}
			if err != nil {
				if !yield(spec.Job{}, err) {
					return
				}
				continue
			}
			trace := rec.str("config") + "/" + rec.str("trace")
			if !slices.Contains(seen, trace) {
				seen = append(seen, strings.Clone(trace))
			}
			if in.part == "" && len(seen) > 1 {
				yield(spec.Job{}, fmt.Errorf("datasets: %s: holds several traces, %s and %s among them: name one, as FILE:dl2=%s", in.name, seen[0], seen[1], seen[0]))
				return
			}
			if want != "" && trace != want {
				continue
			}
			if !ids.yield(rec, dl2Job(rec), yield) {
				return
			}
		}
		if in.part != "" && !slices.Contains(seen, in.part) {
			yield(spec.Job{}, fmt.Errorf("datasets: %s: holds no trace %s, there are: %s", in.name, in.part, strings.Join(seen, ", ")))
		}
	}
}

// dl2Job reads one row.
func dl2Job(rec *record) spec.Job {
	kind, epochs, slot := rec.count("type"), rec.count("epochs"), dl2Slot
	rec.need("arrival_slot")
	id := rec.need("job")
	if strings.HasPrefix(rec.str("config"), "testbed") {
		slot = dl2TestbedSlot
	}
	switch {
	case kind < 1 || kind > len(dl2Kinds):
		rec.fail("type", fmt.Errorf("is not one of 1..%d", len(dl2Kinds)))
	case rec.need("model") != dl2Kinds[kind-1].model:
		rec.fail("model", fmt.Errorf("is not that of type %d, %s", kind, dl2Kinds[kind-1].model))
	case epochs < 1:
		rec.fail("epochs", errors.New("is missing or 0"))
	}
	if rec.err() != nil {
		return spec.Job{}
	}
	return dl2Kinds[kind-1].job(id, time.Duration(rec.count("arrival_slot"))*slot, epochs)
}
