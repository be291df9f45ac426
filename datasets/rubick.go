package datasets

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strconv"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var rubickTables = tables{name: "rubick", files: rubickFiles, read: rubickTable}

var rubickImporter = Importer{
	Name:    "rubick",
	Doc:     "step times of 9 models on up to 64 A800, by plan and shape (Zhang et al., Rubick, MLSys 2025)",
	License: "Apache-2.0",
	URL:     "https://github.com/AlibabaPAI/reconfigurable-dl-scheduler",
	Commit:  "80e85248c65c1ae231e2cf8bbfe0918b7af45c98",
	Dir:     "a clone of the repository, its folder simulator or simulator/traces, or one or two folders above the clone",
	Open:    rubickTables.open,
}

// rubickFiles finds simulator/traces/MODEL/placements.csv in a clone of the repository, in a copy
// of its simulator or traces folder, or one or two folders higher.
func rubickFiles(root fs.FS) ([]string, error) {
	return table.Glob(root,
		"simulator/traces/*/placements.csv",
		"traces/*/placements.csv",
		"*/placements.csv",
		"*/simulator/traces/*/placements.csv",
		"*/*/simulator/traces/*/placements.csv")
}

// rubickSource describes a trace folder, from the code and documents of the repository. The tables
// hold only times.
type rubickSource struct {
	catalog string  // catalog model with the same shape
	params  float64 // as the artifact counts them; 0 = the catalog's
	batch   int     // global batch, fixed per model
	seqLen  int     // tokens per sample
	wordsMS bool    // sub-timers of the rows with a plan word are in ms, else s
}

// rubickSources is indexed by trace folder. Batches and parameters are those of the artifact's
// model tables. Sub-timer units follow from forward + sync + optimizer being 0.7 to 1.04 of the
// iteration time. The two T5 state no sequence length: the fit files' 16777216 = 512 x 32768 gives
// T5-1.2B's, and T5-3B gets the 512 of its pretraining.
var rubickSources = map[string]rubickSource{
	"vit":           {catalog: "ViT-B/16", params: 85_952_456, batch: 64, seqLen: 197},
	"roberta":       {catalog: "RoBERTa-large", params: 355_412_057, batch: 64, seqLen: 512},
	"bert":          {catalog: "BERT-large", params: 336_297_858, batch: 32, seqLen: 512, wordsMS: true},
	"t5":            {catalog: "T5-1.2B", params: 1_240_809_472, batch: 16, seqLen: 512, wordsMS: true},
	"gpt2":          {catalog: "GPT2-XL", params: 1_557_686_400, batch: 16, seqLen: 1024, wordsMS: true},
	"llama7":        {catalog: "Llama2-7B", params: 6_738_423_808, batch: 8, seqLen: 2048},
	"llama7b_bsz16": {catalog: "Llama2-7B", params: 6_738_423_808, batch: 16, seqLen: 2048},
	"llama30":       {catalog: "LLaMA-30B", params: 33_170_309_120, batch: 4, seqLen: 2048},
	"t5_3B":         {catalog: "T5-3B", batch: 4, seqLen: 512},
}

// RubickModel returns the model of a trace folder or workload application such as "gpt2", with that
// name, and its global batch. It returns false for other names.
func RubickModel(name string) (m spec.Model, globalBatch int, ok bool) {
	src, ok := rubickSources[name]
	if !ok {
		return spec.Model{}, 0, false
	}
	m, err := catalog.Model(src.catalog)
	if err != nil {
		panic(err) // both tables are embedded
	}
	m.Name, m.SeqLen = name, src.seqLen
	if src.params > 0 {
		m.ParamCount, m.ActiveParamCount = src.params, 0
	}
	return m, src.batch, true
}

// rubickNode is the testbed's machine: 8 A800, NVLink, RDMA.
const rubickNode = "Rubick A800 testbed"

// rubickFrame is what all rows of a trace folder share.
type rubickFrame struct {
	name   string
	batch  int
	config spec.Config
}

func newRubickFrame(name string) (rubickFrame, error) {
	m, batch, ok := RubickModel(name)
	if !ok {
		return rubickFrame{}, fmt.Errorf("%q is not a model of the data set", name)
	}
	node, err := catalog.Node(rubickNode)
	if err != nil {
		return rubickFrame{}, err
	}
	acc, err := catalog.Accelerator(node.Accelerator)
	if err != nil {
		return rubickFrame{}, err
	}
	return rubickFrame{name: name, batch: batch,
		config: spec.Config{Model: m, Accelerator: acc, Link: node.Link}}, nil
}

// rubickTable yields one trace folder's rows.
func rubickTable(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		name := path.Base(path.Dir(file))
		frame, err := newRubickFrame(name)
		if err != nil {
			yield(spec.Measurement{}, &RowError{File: file, Column: "folder", Value: name, Err: err})
			return
		}
		convertRows(table.ReadFile(ctx, root, file, "exec_plan", "placement", "iter_time"), frame.measurement)(yield)
	}
}

// measurement reads one row. The form of the plan gives the Config's Framework: Megatron-LM for
// three digits, DeepSpeed for words.
func (f rubickFrame) measurement(rec *table.Record) (spec.Measurement, error) {
	plan, placement := rec.Need("exec_plan"), rec.Need("placement")
	shape, err := parseRubickPlacement(placement)
	if err != nil {
		rec.Fail("placement", err)
	}
	m := spec.Measurement{
		Config: f.config, Source: "rubick", Origin: rec.Origin("simulator/traces/*/placements.csv"),
		Env: map[string]string{"plan": plan, "placement": placement, "dtype": "fp32"},
	}
	m.Config.Shape = shape
	if m.Config.Plan, err = ParseRubickPlan(plan, shape.Total(), f.batch); err != nil {
		rec.Fail("exec_plan", err)
	}
	m.Config.Framework = rubickFramework(plan)
	if n := rec.Count("cpu_threads"); n > 0 {
		m.Config.Shape.CPUs = n * shape.Total()
		m.Env["cpu_threads"] = strconv.Itoa(n)
	}
	sec := rec.AtLeast0("iter_time")
	m.PhaseSec = f.phases(rec)
	if rec.Err() != nil {
		return spec.Measurement{}, rec.Err()
	}
	f.setOutcome(&m, sec)
	return m, nil
}

func rubickFramework(plan string) string {
	if isDigits(plan) {
		return "Megatron-LM"
	}
	return "DeepSpeed"
}

// phases returns the sub-timers in seconds; 0 is not recorded. overlap_sync is backward and
// gradient synchronisation; in three-digit plans, which are in milliseconds throughout, it is the
// whole forward-backward pass.
func (f rubickFrame) phases(rec *table.Record) map[string]float64 {
	unit := 1.0
	if src := rubickSources[f.name]; src.wordsMS || isDigits(rec.Str("exec_plan")) {
		unit = 1e-3
	}
	out := map[string]float64{}
	for col, phase := range map[string]string{
		"forward": "forward", "overlap_sync": "backward_sync", "optimize": "optimizer"} {
		if v := rec.AtLeast0(col); v > 0 {
			out[phase] = v * unit
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// setOutcome sets outcome and doubt. Iteration time 0 is a failed run: the batch did not divide
// over the replicas, or else memory ran out.
func (f rubickFrame) setOutcome(m *spec.Measurement, sec float64) {
	p := m.Config.Plan
	even := p.GlobalBatch() == f.batch
	uneven := fmt.Sprintf("global batch %d does not divide over %d replicas", f.batch, p.DP)
	switch {
	case sec > 0:
		m.Outcome, m.StepSec = spec.OK, []float64{sec}
		m.Doubt = f.doubt(m)
		if m.Doubt == "" && !even {
			m.Doubt = uneven
		}
	case !even:
		m.Outcome, m.Reason = spec.Failed, uneven
	default:
		m.Outcome, m.Reason = spec.OOM, "iteration time 0: the run failed, out of memory"
	}
}

// doubt returns why a row is unlikely to be of its Config, "" if it is not:
//
//   - vit on unequal placements or three or more nodes: times vary up to eightfold
//     (8 on a node 0.049 s, 1+7 0.424 s), as with stragglers;
//   - roberta on one device with ga, zero-dp or zero-offload: as fast as two
//     devices, and 99 TFLOP/s where all other models reach 37 to 56, so most
//     likely half the batch;
//   - t5_3B tp+ga on two devices: four times slower than on three.
func (f rubickFrame) doubt(m *spec.Measurement) string {
	s, plan := m.Config.Shape, m.Env["plan"]
	switch {
	case f.name == "vit" && (s.Nodes() >= 3 || s.Most() != s.Least()):
		return "vit on an unequal placement or three and more nodes: times scatter"
	case f.name == "roberta" && s.Total() == 1 && (plan == "ga" || plan == "zero-dp" || plan == "zero-offload"):
		m.Env[spec.EnvWrongConfig] = "most likely run at half the batch"
		return "roberta on one device: most likely run at half the batch"
	case f.name == "t5_3B" && s.Total() == 2 && plan == "tp+ga":
		return "t5_3B tp+ga on two devices: four times slower than on three"
	}
	return ""
}
