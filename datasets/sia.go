package datasets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var siaTables = tables{name: "sia", files: siaFiles, read: siaTable}

var siaImporter = Importer{
	Name:    "sia",
	Doc:     "step times of 6 models by batch and placement on 5 types of GPU (Jayaram Subramanya et al., Sia, SOSP 2023)",
	License: "Apache-2.0 (by file headers)",
	URL:     "https://github.com/siasosp23/artifacts",
	Commit:  "aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70",
	Dir:     "a clone of the repository, its folder sia-simulator or sia-simulator/traces, or the folder above the clone",
	Open:    siaTables.open,
}

// siaCluster is the meaning of a file suffix.
type siaCluster struct {
	suffix string
	node   string // of the catalog
}

// siaClusters is indexed by suffix. "-ext" is the same machine, measured at larger batches.
var siaClusters = []siaCluster{
	{"aws", "g4dn.12xlarge"},
	{"azure", "ND40rs v2"},
	{"dgx", "DGX A100 40GB"},
	{"dgx-ext", "DGX A100 40GB"},
	{"quad", "RTX6000 server"},
	{"rtx", "RTX2080Ti server"},
}

// SiaTable maps a table of Pollux and Sia to its accelerator.
type SiaTable struct {
	Suffix      string // placements-SUFFIX.csv; "" where there is only one type
	Accelerator string // of the catalog
}

// SiaTables returns the meanings of the suffixes, larger batches of a machine first.
func SiaTables() ([]SiaTable, error) {
	var out []SiaTable
	for _, c := range slices.Backward(siaClusters) {
		node, err := catalog.Node(c.node)
		if err != nil {
			return nil, err
		}
		out = append(out, SiaTable{c.suffix, node.Accelerator})
		if c.suffix == "aws" {
			out = append(out, SiaTable{"", node.Accelerator})
		}
	}
	return out, nil
}

// siaSource describes the network of a trace folder; zero = unknown.
type siaSource struct {
	catalog string  // the same network there
	params  float64 // where the catalog lacks it
	flops   float64 // of one forward pass of one sample
}

// siaSources, by trace folder. The samples: a SQuAD question with its
// paragraph in 384 tokens (the length of Devlin et al. 2019, appendix A), an
// image of CIFAR-10 and one of ImageNet, an utterance, an image of VOC, a
// (user, film) pair.
//
//   - bert: BERT-base, 2 x 85.1e6 weights x 384 tokens + 12 layers of attention;
//   - cifar10: the ResNet-18 of three-by-three first convolution (He et al. 2016
//     as kuangliu/pytorch-cifar has it), 0.56e9 multiply-adds;
//   - yolov3: Redmon and Farhadi 2018, table 2: 65.86e9 operations at 416 pixels;
//   - ncf: NeuMF of 32 factors and three layers, the defaults of
//     petuum/adaptdl examples/NCF, over the 6040 users and 3706 films of
//     MovieLens-1M (160 wide embeddings, 256-128-64-32 and 64-1 layers);
//   - deepspeech2 does not say how wide it is.
var siaSources = map[string]siaSource{
	"bert":        {params: 109_482_240, flops: 70.8e9},
	"cifar10":     {params: 11_173_962, flops: 1.11e9},
	"deepspeech2": {},
	"imagenet":    {catalog: "ResNet-50"},
	"ncf":         {params: 1_602_657, flops: 86_176},
	"yolov3":      {params: 61_949_149, flops: 65.86e9},
}

// siaStage is the folder with tables that have no step times.
const siaStage = "gpt_pmp"

// errSiaStage is why that folder is not read.
var errSiaStage = fmt.Errorf("times are forward passes of one pipeline stage, not steps; there is one stage per device: %w", ErrNotMeasurable)

// SiaModel returns the model of a trace folder or workload application such as "bert", with that
// name. It returns false for other names.
func SiaModel(name string) (spec.Model, bool) {
	src, ok := siaSources[name]
	if !ok {
		return spec.Model{}, false
	}
	m := spec.Model{Kind: spec.Opaque, ParamCount: src.params, FLOPsPerSample: src.flops}
	if src.catalog != "" {
		known, err := catalog.Model(src.catalog)
		if err != nil {
			panic(err) // both tables are embedded
		}
		m = known
	}
	m.Name = name
	return m, true
}

// siaFiles finds sia-simulator/traces/MODEL/{placements,scalability}-TYPE.csv in a clone of the
// repository or in a copy of the simulator or traces folder. A table without a type repeats that of
// aws and is read only if that is missing.
func siaFiles(root fs.FS) ([]string, error) {
	all, err := table.Glob(root,
		"traces/*/*.csv",
		"sia-simulator/traces/*/*.csv",
		"*/placements*.csv",
		"*/sia-simulator/traces/*/*.csv",
		"*/traces/*/*.csv")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path.Base(all[0]), "placements") { // the traces folder itself
		more, err := fs.Glob(root, "*/scalability*.csv")
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		slices.Sort(all)
		all = slices.Compact(all)
	}
	var out []string
	for _, file := range all {
		kind, suffix := siaName(file)
		twin := path.Join(path.Dir(file), kind+"-aws.csv")
		if kind == "" || suffix == "" && slices.Contains(all, twin) {
			continue
		}
		out = append(out, file)
	}
	if len(out) == 0 {
		return nil, errors.New("no file is called placements-TYPE.csv or scalability-TYPE.csv")
	}
	return out, nil
}

// siaName splits a file name: placements or scalability, "" for neither, and the rest after its
// first hyphen.
func siaName(file string) (kind, suffix string) {
	kind, suffix, _ = strings.Cut(table.Stem(file), "-")
	if kind != "placements" && kind != "scalability" {
		return "", ""
	}
	return kind, suffix
}

func siaIsStage(file string) bool { return path.Base(path.Dir(file)) == siaStage }

// siaTable yields the rows of one file, or one error if it cannot be read.
func siaTable(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		if siaIsStage(file) {
			yield(spec.Measurement{}, &RowError{File: file, Err: errSiaStage})
			return
		}
		frame, err := newSiaFrame(file)
		if err != nil {
			yield(spec.Measurement{}, err)
			return
		}
		where := []string{"placement"}
		if !frame.placed {
			where = []string{"num_nodes", "num_replicas"}
		}
		convertRows(table.ReadFile(ctx, root, file, append(where, "local_bsz", "step_time", "sync_time")...), frame.measurement)(yield)
	}
}

// siaFrame is what all rows of a file share.
type siaFrame struct {
	config spec.Config
	source string
	node   spec.Node
	placed bool // rows have the devices of each node, else only the number of nodes
}

func newSiaFrame(file string) (siaFrame, error) {
	name := path.Base(path.Dir(file))
	m, ok := SiaModel(name)
	if !ok {
		return siaFrame{}, &RowError{File: file, Column: "folder", Value: name, Err: errors.New("is not a model of the data set")}
	}
	kind, suffix := siaName(file)
	i := slices.IndexFunc(siaClusters, func(c siaCluster) bool { return c.suffix == suffix || suffix == "" && c.suffix == "aws" })
	if i < 0 {
		return siaFrame{}, &RowError{File: file, Column: "suffix", Value: suffix, Err: errors.New("is not a type of GPU of the data set")}
	}
	node, err := catalog.Node(siaClusters[i].node)
	if err != nil {
		return siaFrame{}, err
	}
	acc, err := catalog.Accelerator(node.Accelerator)
	if err != nil {
		return siaFrame{}, err
	}
	return siaFrame{
		config: spec.Config{Model: m, Accelerator: acc, Link: node.Link, Framework: "adaptdl"},
		source: "sia/" + siaClusters[i].suffix, node: node, placed: kind == "placements",
	}, nil
}

// measurement reads one row: data parallel over all devices, local_bsz samples
// on each, one micro-batch a step.
func (f siaFrame) measurement(rec *table.Record) (spec.Measurement, error) {
	m := spec.Measurement{Config: f.config, Outcome: spec.OK, Source: f.source, Origin: rec.Origin("sia-simulator/traces/*/*.csv")}
	m.Config.Shape = f.shape(rec)
	n := m.Config.Shape.Total()
	m.Config.Plan = spec.Plan{DP: n, MicroBatch: rec.Count("local_bsz")}
	if m.Config.Plan.MicroBatch == 0 {
		rec.Fail("local_bsz", errors.New("is missing or 0"))
	}
	m.Config.Plan = m.Config.Plan.Normal()
	if f.placed {
		m.Env = map[string]string{"placement": rec.Str("placement")}
	}
	step, sync := rec.Float("step_time"), rec.AtLeast0("sync_time")
	if !(step > 0 && step < maxStepSec) {
		rec.Fail("step_time", errors.New("is not between 0 and a year"))
	}
	if sync > step {
		rec.Fail("sync_time", errors.New("is more than the step"))
	}
	m.StepSec, m.PhaseSec = []float64{step}, map[string]float64{"sync": sync}
	return m, rec.Err()
}

// shape reads the placement: a digit per node, or a number of devices spread evenly over a number
// of nodes.
func (f siaFrame) shape(rec *table.Record) spec.Shape {
	if f.placed {
		s, err := parseRubickPlacement(rec.Need("placement"))
		if err != nil {
			rec.Fail("placement", err)
		}
		if s.Most() > f.node.Devices {
			rec.Fail("placement", fmt.Errorf("has more than the node's %d devices", f.node.Devices))
		}
		return s
	}
	nodes, n := rec.Count("num_nodes"), rec.Count("num_replicas")
	if nodes < 1 || n < nodes || n > nodes*f.node.Devices {
		rec.Fail("num_replicas", fmt.Errorf("cannot be spread over %d nodes of %d devices", nodes, f.node.Devices))
		return spec.Shape{}
	}
	each := make([]int, nodes)
	for i := range n {
		each[i%nodes]++
	}
	return spec.NewShape(each...)
}

// SiaAccelerator returns the accelerator of a suffix of Sia's tables.
func SiaAccelerator(suffix string) (string, error) {
	tables, err := SiaTables()
	if err != nil {
		return "", err
	}
	var suffixes []string
	for _, t := range tables {
		if t.Suffix == suffix {
			return t.Accelerator, nil
		}
		suffixes = append(suffixes, t.Suffix)
	}
	return "", fmt.Errorf("datasets: %q is not one of Sia's types: %s", suffix, strings.Join(slices.Sorted(slices.Values(suffixes)), ", "))
}
