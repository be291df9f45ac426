package report

import (
	"cmp"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// title names the model and its devices.
func title(r *planner.Request) string {
	return fmt.Sprintf("%s on %s x %s", r.Model.Name, deviceCount(r), r.Accelerator.Name)
}

// deviceCount returns the number of devices of the request, or its range.
func deviceCount(r *planner.Request) string {
	from, to := r.MinDevices, r.Devices
	if r.Shape.Devices != "" {
		to = r.Shape.Total()
	}
	if from == 0 && (r.Objective == planner.Cost || r.Objective == planner.MinDevices) {
		from = 1
	}
	if from == 0 || from == to {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// requestFacts returns the fields of the request, a line each.
func requestFacts(r *planner.Request) []Fact {
	facts := []Fact{
		{"Model", modelWords(r)},
		{"Devices", deviceCount(r) + " x " + acceleratorWords(r)},
		{"Machine", machineWords(r)},
		{"Global batch", batchWords(r)},
		{"Sequence", sequenceWords(r)},
		{"Best is", objectiveWords(r)},
		{"Precision", string(r.Precision)},
		{"Framework", r.Framework},
	}
	out := facts[:0]
	for _, f := range facts {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

func modelWords(r *planner.Request) string {
	m := &r.Model
	s := m.Name
	if n := m.Params(); n > 0 {
		s += ", " + large(n) + " parameters"
		if active := m.ActiveParams(); active > 0 && active < n {
			s += ", " + large(active) + " active"
		}
	}
	if m.Layers > 0 {
		s += fmt.Sprintf(", %d layers", m.Layers)
	}
	return s
}

func acceleratorWords(r *planner.Request) string {
	s := r.Accelerator.Name
	if b := r.Accelerator.MemBytes; b > 0 {
		s += fmt.Sprintf(" of %s GiB", trim(b/memory.GiB))
	}
	return s
}

func machineWords(r *planner.Request) string {
	s := fmt.Sprintf("%d devices a node", cmp.Or(r.PerNode, 8))
	if r.Shape.Devices != "" {
		s = r.Shape.String() + " devices on the nodes"
	}
	if b := cmp.Or(r.Link.IntraBps, r.Accelerator.ScaleUpBps); b > 0 {
		s += fmt.Sprintf(", %s GB/s a device within it", trim(b/1e9))
	}
	if b := r.Link.InterBps; b > 0 {
		s += fmt.Sprintf(", %s Gbit/s a node between them", trim(8*b/1e9))
	}
	return s
}

func batchWords(r *planner.Request) string {
	if r.GlobalBatch > 0 {
		return fmt.Sprintf("%d samples a step", r.GlobalBatch)
	}
	return fmt.Sprintf("%d to %d samples a step", r.MinBatch, r.MaxBatch)
}

func sequenceWords(r *planner.Request) string {
	if n := cmp.Or(r.SeqLen, r.Model.SeqLen); n > 0 {
		return fmt.Sprintf("%d tokens a sample", n)
	}
	return ""
}

func objectiveWords(r *planner.Request) string {
	s := "most samples/s"
	switch r.Objective {
	case planner.Cost:
		s = "least cost per sample"
	case planner.MinDevices:
		s = fmt.Sprintf("fewest devices that make %s samples/s", trim(r.TargetThroughput))
	case planner.Goodput:
		s = fmt.Sprintf("most goodput, samples/s times statistical efficiency at a gradient noise scale of %s samples", trim(r.NoiseScale))
	}
	if r.Risk > 0 {
		s += fmt.Sprintf("; plans are compared by the speed they fall short of with probability %s", trim(r.Risk))
	}
	return s
}

// leadWords introduces the best plan, the first of rk.
func leadWords(r *planner.Request, rk *planner.Ranking) string {
	n := devices(&rk.Choices[0])
	what, do, where := "fastest plan", "fit", ""
	if deviceCount(r) != fmt.Sprint(n) {
		where = fmt.Sprintf(", on %d devices", n)
	}
	switch r.Objective {
	case planner.Cost:
		what = "cheapest plan"
	case planner.MinDevices:
		what, do, where = "plan that reaches the target on the fewest devices", "fit and reach it", fmt.Sprintf(", %d", n)
	case planner.Goodput:
		what = "plan with the highest goodput"
	}
	return fmt.Sprintf("The %s%s; %d of %d legal plans %s:", what, where, rk.Fitting, rk.Evaluated, do)
}
