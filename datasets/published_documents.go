package datasets

import "github.com/pacer-ml/pacer/perfmodel/spec"

// document is what one document of a source states about the machines and networks of its rows, outside the columns. None
// of it is about the training stack.
type document struct {
	// nodes maps accelerators to node types of the catalog, gbps to the network of a node that collectives use, Gb/s.
	nodes  map[string]string
	gbps   map[string]float64
	shapes []documentedShape
	noise  float64 // standard deviation of ln(step time) between runs
}

// documentedShape completes the shape of networks with a recorded width.
type documentedShape struct {
	model         string // "" = any
	hidden        int
	layers, heads int // 0 = as recorded
}

// jeanZay has the nodes of bigscience's machine.
var jeanZay = map[string]string{"V100-SXM2-32GB": "Jean Zay V100", "V100-SXM2-16GB": "Jean Zay V100", "A100-80GB-SXM": "Jean Zay A100"}

// publishedDocuments holds documents by column source_path. Machines may be described elsewhere; of the shapes of networks
// only what the document itself says counts, since scripts that it names may be of other runs. Those of
// bigscience-workshop/bigscience:
//
//   - V100: the same test is 40 % faster or slower at different times of the day, since others share the network ("Apples and
//     Oranges"): a uniform error of ln 1.4 has a standard deviation of 0.2
//   - V100: an all-reduce on 16 nodes reaches 55 Gb/s, of four adapters of 100 Gb/s in a node that NCCL finds
//     (experiments/bandwidth/README.md and n16_32gb_all_reduce_bench.txt), as if it used one of them.
//   - A100: "all NHEADS=64 (above too)" in section "Final round comparison"; the network 14400 wide is that of the first
//     runs, with 96 heads. Its layers vary with the stages. They follow from the printed TFLOPs, which count the parameters
//     of the layers.
var publishedDocuments = map[string]*document{
	"experiments/gpt2.md": {
		nodes: jeanZay,
		gbps:  map[string]float64{"V100-SXM2-32GB": 100, "V100-SXM2-16GB": 100},
		noise: 0.2,
	},
	"train/tr11-176B-ml/chronicles-prequel.md": {
		nodes: jeanZay,
		shapes: []documentedShape{
			{model: "GPT-181B", hidden: 14336, layers: 72, heads: 64},
			{model: "GPT-183B", hidden: 14400, layers: 72, heads: 96},
			{model: "GPT-191B", hidden: 14400, layers: 77, heads: 96},
			{model: "GPT-194B", hidden: 14400, layers: 78, heads: 96},
			{model: "GPT-195B", hidden: 14400, layers: 77, heads: 96},
			{model: "GPT-200B", hidden: 14400, layers: 80, heads: 96},
			{model: "GPT-205B", hidden: 14400, layers: 81, heads: 96},
			{hidden: 12288, heads: 64}, {hidden: 13312, heads: 64}, {hidden: 13824, heads: 64}, {hidden: 14336, heads: 64},
		},
	},
}

// document returns the document of the row, an empty one if it is unknown.
func (r *publishedRow) document() *document {
	if d := publishedDocuments[r.Str("source_path")]; d != nil && (r.source.match == "bigscience" || r.Str("source") == "") {
		return d
	}
	return &document{}
}

// completed returns m with the layers and heads that the document states.
func (d *document) completed(m spec.Model) spec.Model {
	for _, s := range d.shapes {
		if s.hidden != m.Hidden || s.model != "" && s.model != m.Name {
			continue
		}
		if m.Layers == 0 && s.layers > 0 {
			m.Layers, m.ParamCount = s.layers, 0
		}
		if m.Heads == 0 {
			m.Heads = s.heads
		}
		break
	}
	return m
}
