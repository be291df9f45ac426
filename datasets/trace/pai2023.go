package trace

import (
	"iter"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// pai2023Trace describes the published trace.
var pai2023Trace = Format{
	License: "none stated for this folder; that of 2020 is CC-BY-4.0",
	URL:     "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023",
	Commit:  "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
}

// severalAccelerators is the note on pods that accept several accelerators.
const severalAccelerators = "allows several types of accelerator, but not all; any may be used"

// readPAI2023 reads openb_pod_list_*.csv. A pod is a job that runs from when it is scheduled until
// it is deleted. A pod that was never scheduled, or has no GPU, is left out (ErrNoJob). A share of
// a GPU counts as a whole one, so device hours are overstated for pods that share devices.
func readPAI2023(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("name",
		[]string{"name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"},
		[]string{"cpu_milli", "memory_mib", "gpu_spec", "qos", "pod_phase"},
		pai2023Pod)
}

func pai2023Pod(r *record) spec.Job {
	j := spec.Job{
		ID:          spec.JobID(r.Need("name")),
		Submit:      r.needSeconds("creation_time"),
		Devices:     r.requested("num_gpu"),
		Accelerator: r.openbAccelerator(),
	}
	if milli := r.Count("gpu_milli"); j.Devices == 1 && milli < 1000 {
		r.whole("gpu_milli", float64(milli)/1000)
	}
	if r.Str("scheduled_time") == "" {
		r.leaveOut("was never scheduled")
		return j
	}
	j.Duration = r.between("scheduled_time", r.seconds("scheduled_time"), "deletion_time", r.needSeconds("deletion_time"))
	return j
}

// paiAccelerators maps names of the PAI traces; V100M16 and V100M32 are assumed to be SXM2 modules.
var paiAccelerators = map[string]string{
	"V100M16": "V100-SXM2-16GB", "V100M32": "V100-SXM2-32GB",
	"V100": "V100-SXM2-16GB",
	"MISC": "", // "GPUs of older generations, e.g. K40m, K80, M60"
}

func paiAccelerator(name string) string {
	if known, ok := paiAccelerators[name]; ok {
		return known
	}
	return jobAccelerator(name)
}

// openbAccelerator returns the only accelerator in gpu_spec, a list with bars; "" for an empty one.
func (r *record) openbAccelerator() string {
	types := r.Str("gpu_spec")
	if strings.Contains(types, "|") {
		r.notes = append(r.notes, severalAccelerators)
		return ""
	}
	return paiAccelerator(types)
}
