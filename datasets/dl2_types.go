package datasets

import (
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DL2Type is a job type of the simulator of DL2 (Peng et al., DL2, TPDS 2021; from its code).
type DL2Type struct {
	Model  string
	Batch  int     // samples per step, as in the measurements
	Epoch  int     // samples per epoch in the simulator
	Length float64 // epochs of a job, as a share of the longest possible job's
	OnCPUs bool    // its workers need no GPU
}

var dl2Types = []DL2Type{
	{"resnet-50", 32, 115, 0.30, false},
	{"vgg-16", 32, 115, 0.96, false},
	{"resnext-110", 128, 390, 0.05, false},
	{"inception-bn", 128, 120, 0.54, false},
	{"seq2seq", 64, 780, 0.95, false},
	{"cnn-text-classification", 50, 193, 0.46, true},
	{"dssm", 256, 349, 0.33, true},
	{"wlm", 160, 165, 0.23, false},
}

// DL2Types returns the job types, by number from 1.
func DL2Types() []DL2Type { return slices.Clone(dl2Types) }

// dl2CPUs is the host need of a worker, with or without GPU, and of a parameter server.
var dl2CPUs = spec.Host{MilliCPUs: 2000}

// Job returns a job of the type that trains for a number of the simulator's epochs. They are
// converted to steps; Job.Epochs stays 0. It starts with one worker and one parameter server.
func (t *DL2Type) Job(id string, submit time.Duration, epochs int) spec.Job {
	j := spec.Job{
		ID: spec.JobID(id), Submit: submit, Model: spec.Model{Name: t.Model, Kind: spec.Opaque},
		GlobalBatch: t.Batch, Devices: 1, Host: dl2CPUs, ServerHost: dl2CPUs,
		Steps: float64(epochs) * float64(t.Epoch) / float64(t.Batch),
	}
	if t.OnCPUs {
		j.Devices = 0
	}
	j.Plan = j.ParamServerPlan(1, 1)
	return j
}
