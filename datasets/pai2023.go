package datasets

import (
	"iter"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// pai2023Trace is where the trace is published.
var pai2023Trace = Trace{
	License: "none stated for this folder; that of 2020 is CC-BY-4.0",
	URL:     "https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023",
	Commit:  "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
}

// whySeveral is said of pods that any of several accelerators would do.
const whySeveral = "allows several types of accelerator, but not all; any may be used"

// readPAI2023 reads openb_pod_list_*.csv. A pod is a job that ran from when it
// was scheduled until it was deleted; one that never was, or has no GPU, is
// left out (ErrNoJob). A share of a GPU counts as a whole one: whoever wants
// pods to share devices must not take device hours from here.
func readPAI2023(in *input) iter.Seq2[spec.Job, error] {
	return in.readJobs("name",
		[]string{"name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"},
		[]string{"cpu_milli", "memory_mib", "gpu_spec", "qos", "pod_phase"},
		pai2023Pod)
}

func pai2023Pod(r *record) spec.Job {
	j := spec.Job{
		ID:          spec.JobID(r.need("name")),
		Submit:      r.needSeconds("creation_time"),
		Devices:     r.requested("num_gpu"),
		Accelerator: r.openbAccelerator(),
	}
	if milli := r.count("gpu_milli"); j.Devices == 1 && milli < 1000 {
		r.whole("gpu_milli", float64(milli)/1000)
	}
	if r.str("scheduled_time") == "" {
		r.leaveOut("was never scheduled")
		return j
	}
	j.Duration = r.between("scheduled_time", r.seconds("scheduled_time"), "deletion_time", r.needSeconds("deletion_time"))
	return j
}

// paiAccelerators are names of the PAI traces; V100M16 and V100M32 are taken to
// be SXM2 modules, which the traces do not say.
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

// openbAccelerator returns the only accelerator in gpu_spec, where types are
// joined by bars; "" where that is empty.
func (r *record) openbAccelerator() string {
	types := r.str("gpu_spec")
	if strings.Contains(types, "|") {
		r.notes = append(r.notes, whySeveral)
		return ""
	}
	return paiAccelerator(types)
}
