package calibrate

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// column is a column of the file of rows, see docs/reference/file-formats.md.
type column struct {
	name string
	of   func(spec.Config) string
}

func whole(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// count is a column of a number of the plan; 1 is written too, so that nothing is assumed.
func count(name string, of func(spec.Plan) int) column {
	return column{name, func(c spec.Config) string { return strconv.Itoa(of(c.Plan.Normal())) }}
}

// figure is a column of a number of a model that the catalog lacks.
func figure(name string, of func(spec.Model) int) column {
	return column{name, func(c spec.Config) string {
		if inCatalog(c.Model) {
			return ""
		}
		return whole(of(c.Model))
	}}
}

func inCatalog(m spec.Model) bool {
	known, err := catalog.Model(m.Name)
	known.SeqLen = m.SeqLen // has a column of its own
	return err == nil && known == m
}

// columns are those of the file of rows.
var columns = []column{
	{"framework", func(c spec.Config) string { return c.Framework }},
	{"model", func(c spec.Config) string { return c.Model.Name }},
	figure("layers", func(m spec.Model) int { return m.Layers }), figure("hidden", func(m spec.Model) int { return m.Hidden }),
	figure("heads", func(m spec.Model) int { return m.Heads }), figure("kv_heads", func(m spec.Model) int { return m.KVHeads }),
	figure("head_dim", func(m spec.Model) int { return m.HeadDim }), figure("ffn", func(m spec.Model) int { return m.FFN }),
	figure("experts", func(m spec.Model) int { return m.Experts }), figure("experts_per_token", func(m spec.Model) int { return m.ExpertsPerToken }),
	figure("expert_ffn", func(m spec.Model) int { return m.ExpertFFN }), figure("shared_experts", func(m spec.Model) int { return m.SharedExperts }),
	figure("vocab", func(m spec.Model) int { return m.Vocab }),
	{"seq_len", func(c spec.Config) string { return whole(c.Seq()) }},
	{"accelerator", func(c spec.Config) string { return c.Accelerator.Name }},
	{"num_gpus", func(c spec.Config) string { return strconv.Itoa(c.Plan.Devices()) }},
	{"gpus_per_node", func(c spec.Config) string { return whole(c.Shape.Most()) }},
	count("dp", func(p spec.Plan) int { return p.DP }), count("tp", func(p spec.Plan) int { return p.TP }),
	count("pp", func(p spec.Plan) int { return p.PP }), count("cp", func(p spec.Plan) int { return p.CP }),
	count("ep", func(p spec.Plan) int { return p.EP }), count("vpp", func(p spec.Plan) int { return p.VirtualStages }),
	{"schedule", func(c spec.Config) string { return string(c.Plan.Schedule) }},
	{"sp", func(c spec.Config) string { return map[bool]string{false: "0", true: "1"}[c.Plan.SequenceParallel] }},
	count("zero_stage", func(p spec.Plan) int { return p.ZeRO }),
	{"shard", func(c spec.Config) string { return whole(c.Plan.Shard) }},
	{"offload", func(c spec.Config) string { return string(c.Plan.Normal().Offload) }},
	{"recompute", func(c spec.Config) string { return string(c.Plan.Normal().Recompute) }},
	{"precision", func(c spec.Config) string { return string(c.Plan.Precision) }},
	count("micro_batch", func(p spec.Plan) int { return p.MicroBatch }), count("grad_accum", func(p spec.Plan) int { return p.AccumSteps }),
}

// template returns a file of rows without outcomes, one per configuration. Columns that are blank in all rows
// are left out.
func template(configs []spec.Config) []byte {
	table := make([][]string, len(configs)+1)
	table[0] = []string{"row_id"}
	for i := range configs {
		table[i+1] = []string{strconv.Itoa(i + 1)}
	}
	for _, col := range columns {
		if !slices.ContainsFunc(configs, func(c spec.Config) bool { return col.of(c) != "" }) {
			continue
		}
		table[0] = append(table[0], col.name)
		for i, c := range configs {
			table[i+1] = append(table[i+1], col.of(c))
		}
	}
	for i, cells := range [][]string{{"step_time_s", "mem_gib", "status"}} {
		table[i] = append(table[i], cells...)
	}
	for i := range configs {
		table[i+1] = append(table[i+1], "", "", "")
	}
	return csvText(table)
}

// readable returns the configurations that a file of rows describes: read back, they are the same plan of the
// same amount of work.
func readable(ctx context.Context, configs []spec.Config) (out []spec.Config, err error) {
	var why string
	i := 0
	for row, err := range datasets.PublishedRows(ctx, "rows.csv", bytes.NewReader(template(configs)), nil, false) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c := configs[i]; err != nil {
			why = err.Error()
		} else if got := row.Measurement.Config; !sameRun(got, c) {
			why = fmt.Sprintf("%s would be read as %s, plan %s", c.Plan, got.Model.Name, got.Plan)
		} else {
			out = append(out, c)
		}
		i++
	}
	if len(out) == 0 {
		err = fail.NoAnswerf("calibrate: a file of rows cannot describe the plans of %s: %s", configs[0].Model.Name, why)
	}
	return out, err
}

// sameWork bounds the difference of ln FLOPs of a model read back: details that the columns lack, such as biases.
const sameWork = 0.02

func sameRun(a, b spec.Config) bool {
	work := math.Log(a.Model.TrainFLOPs(a.Seq()) / b.Model.TrainFLOPs(b.Seq()))
	return a.Plan.Normal() == b.Plan.Normal() && a.Shape.Devices == b.Shape.Devices && a.Accelerator.Name == b.Accelerator.Name && math.Abs(work) < sameWork
}
