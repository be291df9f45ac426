package profiler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// check reports contradictions between values that are valid on their own, so that no machine could run them.
func (r *campaignReader) check() {
	if r.c.Runner.Name == RunnerCommand {
		for _, e := range r.pointKeys {
			if e.Key != "timeout" && e.Key != "threads" {
				r.Fail(e.At, "%s has no effect with runner command, which has warmup_steps and timed_steps", e.Key)
			}
		}
	}
	if r.c.Space.Measured {
		r.checkMeasured()
		return
	}
	if name := r.c.Runner.Name; r.c.Space.Alone && (name == RunnerCommand || name == RunnerReplay) {
		for _, e := range r.spaceKeys {
			if e.Key == "alone" {
				r.Fail(e.At, "alone has no effect with runner %s: only Pacer's own worker runs one rank without the others", name)
			}
		}
	}
	if n := r.c.Space.combinations(len(r.c.Models)); n > maxPoints {
		r.Fail(r.space.Token(), "the space has %.0f combinations, want at most %d", n, maxPoints)
	}
	r.checkDegrees("tp", r.tp, r.c.Space.TP, func(v int) spec.Plan { return spec.Plan{TP: v} })
	r.checkDegrees("pp", r.pp, r.c.Space.PP, func(v int) spec.Plan { return spec.Plan{PP: v} })
	for i, p := range r.c.Space.Plans {
		r.checkPlan(r.plans[i], p)
	}
}

// checkMeasured reports keys that a measured space ignores.
func (r *campaignReader) checkMeasured() {
	for _, e := range r.spaceKeys {
		if e.Key != "measured" {
			r.Fail(e.At, "%s has no effect with measured: true", e.Key)
		}
	}
	if r.c.Space.Accelerator == AnyGPU {
		r.accelerator.Fail("accelerator: %s has no effect with measured: true, want the name of an accelerator in the table", AnyGPU)
	}
	if r.c.Runner.Name != RunnerReplay {
		at := r.space.Token()
		for _, e := range r.spaceKeys {
			if e.Key == "measured" {
				at = e.At
			}
		}
		r.Fail(at, "measured: true needs a table: runner: {name: replay, source: rubick}")
	}
}

// checkDegrees reports values of tp or pp that do not divide any model, or that need more devices than the
// largest shape has.
func (r *campaignReader) checkDegrees(key string, at []yamlfile.Node, values []int, plan func(int) spec.Plan) {
	most := 0
	for _, s := range r.c.Space.shapes() {
		most = max(most, s.Total())
	}
	for i, v := range values {
		if v > most {
			at[i].Fail("%s=%d needs %d devices, the largest shape has %d", key, v, v, most)
			continue
		}
		if why := r.noModel(plan(v)); why != "" {
			at[i].Fail("%s", why)
		}
	}
}

// noModel returns why none of the models can run p, "" if one can.
func (r *campaignReader) noModel(p spec.Plan) string {
	first := ""
	for _, m := range r.c.Models {
		err := p.Check(m)
		if err == nil {
			return ""
		}
		if first == "" {
			first = unprefixed(err)
		}
	}
	if n := len(r.c.Models); n > 1 {
		return fmt.Sprintf("%s, and none of the other %d models can either", first, n-1)
	}
	return first
}

// checkPlan reports an exact plan without a shape of its size, or one that a model cannot run.
func (r *campaignReader) checkPlan(at yamlfile.Node, p spec.Plan) {
	var sizes []string
	fits := false
	for _, s := range r.c.Space.shapes() {
		sizes = append(sizes, s.String())
		fits = fits || s.Total() == p.Devices()
	}
	if !fits {
		at.Fail("plan %s is for %d devices, the shapes are %s", p, p.Devices(), strings.Join(sizes, ", "))
		return
	}
	for _, m := range r.c.Models {
		for _, seq := range orDefault(r.c.Space.SeqLens, 0) {
			if why := cannotRun(m, cmp.Or(seq, m.SeqLen), p); why != "" {
				at.Fail("plan %s: %s", p, why)
				break
			}
		}
	}
}
