package launch

import (
	"fmt"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// lacking collects the parts of a plan without a setting.
type lacking []lack

// when adds field where bad is true.
func (l *lacking) when(bad bool, field string, value any, why string, args ...any) {
	if bad {
		*l = append(*l, lack{field, fmt.Sprint(value), fmt.Sprintf(why, args...)})
	}
}

// servers adds parameter servers, which no framework here has.
func (l *lacking) servers(p *spec.Plan) {
	l.when(p.ParamServers > 0, "ps", p.ParamServers, "replicas reduce gradients among themselves")
	l.when(p.Async, "async", 1, "replicas step together")
}

// zeroBubbleH adds the schedules of Qi et al. with one chunk per stage.
func (l *lacking) zeroBubbleH(p *spec.Plan) {
	l.when(p.Schedule == spec.ScheduleZBH1 || p.Schedule == spec.ScheduleZBH2, "schedule", p.Schedule,
		"only the authors' fork of Megatron-LM (sail-sg/zero-bubble-pipeline-parallelism) has it")
}

// dataParallelOnly adds every split of the model itself.
func (l *lacking) dataParallelOnly(p *spec.Plan, why string) {
	l.when(p.TP > 1, "tp", p.TP, "%s", why)
	l.pipelines(p, why)
	l.when(p.CP > 1, "cp", p.CP, "%s", why)
	l.when(p.EP > 1, "ep", p.EP, "%s", why)
}

// pipelines adds every field of pipelines.
func (l *lacking) pipelines(p *spec.Plan, why string) {
	l.when(p.PP > 1, "pp", p.PP, "%s", why)
	l.when(p.VirtualStages > 1, "vp", p.VirtualStages, "%s", why)
	l.when(p.Schedule != spec.ScheduleDefault, "schedule", p.Schedule, "%s", why)
}

// precision adds formats other than has.
func (l *lacking) precision(p spec.Precision, why string, has ...spec.Precision) {
	for _, f := range has {
		if p == f {
			return
		}
	}
	l.when(true, "precision", p, "%s", why)
}

// chunks returns the number of layers of every chunk of c's pipeline, in the order
// of the model: the first chunk of every stage, then the second, and so on.
func chunks(c *spec.Config) []int {
	var out []int
	for chunk := range c.Plan.Chunks() {
		for stage := range c.Plan.PP {
			out = append(out, c.Plan.ChunkLayers(c.Model.Layers, stage, chunk))
		}
	}
	return out
}

// uneven reports whether the chunks of c's pipeline differ in layers.
func uneven(c *spec.Config) bool {
	return c.Plan.PP > 1 && c.Model.Layers%(c.Plan.PP*c.Plan.Chunks()) != 0
}

// replicas returns the number of copies of the sharded states: more than 1 where the
// plan shards over a part of its devices (HSDP).
func replicas(p *spec.Plan) int { return p.DP * p.CP / p.Shards() }

// expertTP returns the number of devices that each expert's width is split over: TP
// without expert parallelism, else TP/EP.
func expertTP(p *spec.Plan) int { return max(p.EP, p.TP) / p.EP }

func itoa(n int) string { return strconv.Itoa(n) }
