package datasets

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var errNegative = errors.New("is negative")

// config reads everything of the Config but the plan.
func (r *publishedRow) config() {
	c := &r.m.Config
	c.SeqLen = r.count("seq_len")
	c.Model = r.model()
	c.Accelerator = r.accelerator()
	c.Shape = r.shape()
	c.Link = r.link()
	c.Framework = r.framework()
}

// variant is a remark behind a model's name, such as "(w/o MTP)".
var variant = regexp.MustCompile(`\s*\([^)]*\)$`)

// model returns the catalog's model of that name if nothing the row records
// speaks against it, else one with what is recorded. A row without a sequence
// length has a Model without one, so that none is assumed.
func (r *publishedRow) model() spec.Model {
	name := r.need("model")
	own := spec.Model{
		Name: name, Kind: spec.Opaque,
		Layers: r.count("layers"), Hidden: r.count("hidden"), Heads: r.count("heads"), Vocab: r.count("vocab"),
		SeqLen: r.count("seq_len"), ParamCount: math.Round(r.atLeast0("params_b") * 1e9),
	}
	if own.Hidden > 0 {
		own.Kind = spec.Decoder
	}
	m, ok := catalogModel(variant.ReplaceAllString(name, ""), r.str("params_b"))
	if !ok {
		return own
	}
	if contradicts(own, m) {
		own.Name = fmt.Sprintf("%s (%s)", name, r.table) // the name is taken
		return own
	}
	if own.SeqLen == 0 {
		m.SeqLen = 0
	}
	return m
}

// catalogModel finds a model by name, or by name and size where a source
// prints the size in a column of its own ("Llama 2", 7).
func catalogModel(name, paramsB string) (spec.Model, bool) {
	m, err := catalog.Model(name)
	if err != nil && paramsB != "" {
		m, err = catalog.Model(name + "-" + paramsB + "B")
	}
	return m, err == nil
}

// contradicts reports whether recorded figures are not those of m. A vocabulary
// may be padded by 2 %.
func contradicts(recorded, m spec.Model) bool {
	differ := func(a, b int) bool { return a != 0 && b != 0 && a != b }
	pad := math.Abs(float64(recorded.Vocab - m.Vocab))
	return differ(recorded.Layers, m.Layers) || differ(recorded.Hidden, m.Hidden) || differ(recorded.Heads, m.Heads) ||
		recorded.Vocab != 0 && m.Vocab != 0 && pad > 0.02*float64(m.Vocab)
}

var leadingCount = regexp.MustCompile(`^[0-9]+x\s*`)

// accelerator returns the catalog's part of that name, or one with only the
// name. Some sources put the host and the device count before it:
// "LambdaCloud 8x H100 80GB SXM5".
func (r *publishedRow) accelerator() spec.Accelerator {
	name := r.need("accelerator")
	words := strings.Fields(name)
	for i := range words {
		if a, err := catalog.Accelerator(leadingCount.ReplaceAllString(strings.Join(words[i:], " "), "")); err == nil {
			return a
		}
	}
	return spec.Accelerator{Name: name}
}

// shape spreads the devices over the nodes recorded, or packs them eight a
// node.
func (r *publishedRow) shape() spec.Shape {
	n, nodes, perNode := r.count("num_gpus"), r.count("num_nodes"), r.count("gpus_per_node")
	if n < 1 || n > maxDevices {
		r.fail("num_gpus", fmt.Errorf("is not a number of devices in 1..%d", maxDevices))
		return spec.Shape{}
	}
	if nodes*perNode == n {
		return spec.Packed(n, perNode)
	}
	if perNode == 0 {
		perNode = 8
	}
	return spec.Packed(n, perNode)
}

// maxDevices bounds what one job may use.
const maxDevices = 1 << 20

// publishedNodes are the machines of sources whose documents describe other
// ones than the accelerator's default.
var publishedNodes = map[string]map[string]string{
	"bigscience": {"V100-SXM2-32GB": "Jean Zay V100", "V100-SXM2-16GB": "Jean Zay V100", "A100-80GB-SXM": "Jean Zay A100"},
	"internevo":  {"A100-80GB-SXM": "InternEvo A100"},
}

// nodeRate finds the network of a node in the notes: "400 Gb/s per node".
var nodeRate = regexp.MustCompile(`\b([0-9]{2,4}) Gb/s(?: per node)?(;|$)`)

// nvl72 is the devices that NVLink joins in a GB200 or GB300 rack.
const nvl72 = 72

// link returns the network of the source's machines, as far as it is known.
func (r *publishedRow) link() spec.Link {
	acc := r.m.Config.Accelerator
	node, _ := catalog.NodeFor(acc.Name)
	if name := publishedNodes[r.table][acc.Name]; name != "" {
		if n, err := catalog.Node(name); err == nil {
			node = n
		}
	}
	l := node.Link
	if g := nodeRate.FindStringSubmatch(firstPart(r.str("notes"), "seq_len")); g != nil {
		v, _ := strconv.Atoi(g[1])
		l.InterBps = float64(v) * 1e9 / 8
	}
	if (acc.Name == "GB200" || acc.Name == "GB300") && r.count("num_gpus") <= nvl72 {
		l.InterBps = float64(node.Devices) * l.IntraBps // all inside one NVLink domain
	}
	return l
}

// firstPart returns s up to a word.
func firstPart(s, before string) string {
	head, _, _ := strings.Cut(s, before)
	return strings.TrimSpace(head)
}

// publishedFrameworks names the training stack of each table.
var publishedFrameworks = map[string]string{
	"bigscience":             "Megatron-DeepSpeed",
	"fms_fsdp":               "FSDP",
	"internevo":              "InternEvo",
	"korthikanti_2205_05198": "Megatron-LM",
	"lambda_dl_benchmark":    "PyTorch",
	"litgpt":                 "LitGPT",
	"megatron_bridge":        "Megatron-Bridge",
	"megatron_sc21":          "Megatron-LM",
	"nemo_2407":              "NeMo",
	"nemo_megatron_launcher": "NeMo Megatron",
	"torchtitan":             "torchtitan",
}

// framework is the table's, or what a model's folder says ("PyTorch/BERT").
func (r *publishedRow) framework() string {
	if f, ok := publishedFrameworks[r.table]; ok {
		return f
	}
	if f, _, ok := strings.Cut(r.str("model"), "/"); ok {
		return f
	}
	return ""
}
