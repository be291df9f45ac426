package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/huggingface"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// config reads the Config, from columns other than outcomes.
func (r *publishedRow) config() {
	c := &r.m.Config
	c.Accelerator = r.source.devices.measured(r.accelerator())
	c.Framework = r.framework()
	c.SeqLen = r.Count("seq_len")
	c.Model = r.model()
	if c.Model.Kind != spec.Opaque || c.Model.ParamCount > 0 && c.Model.FLOPsPerSample == 0 {
		r.tokens()
	}
	c.Model = r.imbalanced(r.packed(c.Model))
	c.Shape = r.shape()
	c.Link = r.link()
	r.plan()
}

// tokens assumes the sequence length of the model if no length is recorded. It does not for
// adapters: their samples are shorter by an unknown factor.
func (r *publishedRow) tokens() {
	c := &r.m.Config
	switch {
	case c.SeqLen > 0:
	case r.source.seqLens[c.Model.Name] > 0:
		c.SeqLen = r.source.seqLens[c.Model.Name]
	case r.source.adapters:
		c.Model.SeqLen = 0
	case c.Model.SeqLen > 0:
		c.SeqLen = c.Model.SeqLen
		r.assume("tokens per sample not recorded, taken as %d", c.SeqLen)
	}
}

// modelCells are the cells that identify a model: its name, parameters, sequence length, config file and document, and
// shapeColumns.
type modelCells struct {
	name, params, seq, config, path string
	shape                           [len(shapeColumns)]string
}

// modelMatch is the model of such columns, and what is assumed of it.
type modelMatch struct {
	model spec.Model
	note  string
}

// add adds a note.
func (a *modelMatch) add(note string) { a.note = strings.TrimPrefix(a.note+"; "+note, "; ") }

// model returns the model of the config file; without one the catalog's model of that name if no recorded
// figure contradicts it, else a model of the recorded figures. Results are cached by the cells.
func (r *publishedRow) model() spec.Model {
	name, _ := r.modelName()
	key := modelCells{name: name, params: r.Str("params_b"), seq: r.Str("seq_len"), config: r.Str("config"), path: r.Str("source_path")}
	for i, c := range shapeColumns {
		key.shape[i] = r.Str(c.name)
	}
	a, ok := r.table.models[key]
	if !ok {
		a = r.findModel(key.name, key.config)
		if r.Err() != nil {
			return a.model
		}
		r.table.models[key] = a
	}
	if a.note != "" {
		r.note("%s", a.note)
	}
	return r.adapted(a.model)
}

// modelName returns the name of the model, and the method of fine-tuning that stands behind the name of a known one.
func (r *publishedRow) modelName() (name string, kind spec.AdapterKind) {
	name = r.Need("model")
	bare, kind := catalog.SplitAdapter(name)
	if kind == "" || r.source.folders {
		return name, ""
	}
	if _, ok := catalogModel(withoutRemark(bare), r.Str("params_b"), true); !ok {
		return name, ""
	}
	return bare, kind
}

// remark is a remark after the name of a model, such as "(w/o MTP)"; withoutMTP is that one.
var (
	remark     = regexp.MustCompile(`\s*\([^():=]*\)$`)
	withoutMTP = regexp.MustCompile(`(?i)\((w/o|without|no) MTP\)$`)
)

// withoutRemark strips a remark from the name of a model, but no adapter or changed figure.
func withoutRemark(name string) string {
	if catalog.IsVariant(name) {
		return name
	}
	return remark.ReplaceAllString(name, "")
}

func (r *publishedRow) findModel(name, config string) modelMatch {
	recorded := r.recordedModel(name)
	if r.Err() != nil {
		return modelMatch{}
	}
	if config != "" {
		return r.configModel(&recorded, config)
	}
	m, ok := catalogModel(withoutRemark(name), r.Str("params_b"), !r.source.folders)
	var figures []string // that differ from the catalog's
	if m.MTPLayers > 0 && recorded.MTPLayers == 0 && (r.Str("mtp_layers") == "0" || withoutMTP.MatchString(name)) {
		m.MTPLayers, figures = 0, []string{"mtp_layers=0"}
	}
	column := contradiction(&recorded, &m)
	switch {
	case ok && column == "":
		m.Name = variantName(m.Name, figures)
		return modelMatch{model: m}
	case ok && column != "hidden" && column != "heads": // the same layers, another number of them
		m = changed(&m, &recorded, figures)
		return r.checked(m)
	case ok: // another network of that name
		recorded.Name = fmt.Sprintf("%s (%d layers of %d)", name, recorded.Layers, recorded.Hidden)
	}
	a := r.checked(recorded)
	switch m := &a.model; {
	case m.Hidden > 0 && m.FFN+m.ExpertFFN > 0:
		m.GatedMLP = gated(m)
		a.add(fmt.Sprintf("gated MLP not recorded, taken as %v from its width", m.GatedMLP))
	case m.ParamCount > 0 && (m.Layers == 0 || m.Hidden == 0) && m.SeqLen > 1:
		a.add("layers or width not recorded, derived from the parameter count")
	}
	return a
}

// configModel reads a model from a config.json beside the table. Recorded figures must agree with it.
func (r *publishedRow) configModel(recorded *spec.Model, file string) modelMatch {
	if r.table.beside == nil {
		r.Fail("config", errors.New("is a file beside the table, but the table is not read from a file: give the model's columns instead"))
		return modelMatch{}
	}
	f, err := r.table.beside.Open(path.Clean(file))
	if err != nil {
		r.Fail("config", fmt.Errorf("is not a file in the table's folder: %w", err))
		return modelMatch{}
	}
	defer f.Close()
	m, warnings, err := huggingface.Read(f)
	if err != nil {
		r.Fail("config", err)
		return modelMatch{}
	}
	if column := contradiction(recorded, &m); column != "" {
		r.Fail(column, fmt.Errorf("contradicts %s", file))
		return modelMatch{}
	}
	m.Name = recorded.Name
	m.SeqLen = cmp.Or(recorded.SeqLen, m.SeqLen)
	m.ParamCount = cmp.Or(recorded.ParamCount, m.ParamCount)
	a := modelMatch{model: m}
	if err := errors.Join(warnings...); err != nil {
		a.note = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return a
}

// recordedModel returns the model of the recorded figures.
func (r *publishedRow) recordedModel(name string) spec.Model {
	m := spec.Model{Name: name, Kind: spec.Opaque, SeqLen: r.Count("seq_len"), ParamCount: math.Round(r.AtLeast0("params_b") * 1e9)}
	for _, c := range shapeColumns {
		*c.at(&m) = r.Count(c.name)
	}
	if m.Experts == 1 && m.ExpertsPerToken <= 1 && m.ExpertFFN+m.SharedExperts == 0 { // a dense MLP
		m.Experts, m.ExpertsPerToken = 0, 0
	}
	m = r.document().completed(m)
	if m.Hidden > 0 {
		m.Kind = spec.Decoder
	}
	if m.KVRank > 0 && m.HeadDim == 0 && m.Heads > 0 && m.Hidden/m.Heads != latentHead {
		m.HeadDim = latentHead
	}
	return m
}

// latentHead is the width of a head, without its rotated part, in all published networks with latent attention:
// DeepSeek-V2 (section 3.1.2), DeepSeek-V3 (section 4.2) and Kimi K2.
const latentHead = 128

// catalogModel finds a model by name, by name and size if a source has a column for the size
// ("Llama 2", 7), or without the organization ("meta-llama/Llama-2-7b") and in other words ("Llama 2 7B chat").
func catalogModel(name, paramsB string, folder bool) (spec.Model, bool) {
	m, err := catalog.Model(name)
	if err != nil && paramsB != "" {
		m, err = catalog.Model(name + "-" + paramsB + "B")
	}
	if i := strings.LastIndex(name, "/"); err != nil && folder && i >= 0 {
		if m, ok := catalogModel(name[i+1:], paramsB, false); ok {
			return m, true
		}
	}
	if err != nil && folder {
		m, err = catalog.ModelOnHub(name)
	}
	return m, err == nil
}

// accelerator returns the catalog's accelerator of that name, or one with only the name.
func (r *publishedRow) accelerator() spec.Accelerator {
	name := r.Need("accelerator")
	a, ok := r.table.accelerators[name]
	if !ok {
		a = findAccelerator(name)
		r.table.accelerators[name] = a
	}
	_, bare := catalog.SplitCount(name)
	if also := catalog.AlsoMeans(bare); also != "" {
		r.note("accelerator %s taken as %s, not %s", bare, a.Name, also)
	}
	return a
}

// findAccelerator looks an accelerator up. Some sources put host and device count before the name:
// "LambdaCloud 8x H100 80GB SXM5".
func findAccelerator(name string) spec.Accelerator {
	words := strings.Fields(name)
	for i := range words {
		_, bare := catalog.SplitCount(strings.Join(words[i:], " "))
		if a, err := catalog.Accelerator(bare); err == nil {
			return a
		}
	}
	_, bare := catalog.SplitCount(name)
	if a, err := catalog.AcceleratorOf(bare); err == nil {
		return a
	}
	return spec.Accelerator{Name: name}
}

// shape spreads the devices over the recorded nodes, or packs them on the usual nodes of the
// accelerator.
func (r *publishedRow) shape() spec.Shape {
	nodes, perNode := r.Count("num_nodes"), r.Count("gpus_per_node")
	n := r.devices(nodes, perNode)
	if n < 1 || n > table.MaxDevices {
		r.Fail("num_gpus", fmt.Errorf("is not a number of devices in 1..%d", table.MaxDevices))
		return spec.Shape{}
	}
	if nodes*perNode != n && perNode == 0 {
		perNode = r.usualNode(n, nodes)
	}
	key := [3]int{n, perNode}
	s, ok := r.table.shapes[key]
	if !ok {
		s = spec.Packed(n, perNode)
		r.table.shapes[key] = s
	}
	return s
}

// devices returns the number of devices of the row: as recorded, else of its nodes, else of its
// plan, else of that many usual nodes. 0 if none is recorded.
func (r *publishedRow) devices(nodes, perNode int) int {
	switch n := r.Count("num_gpus"); {
	case r.Str("num_gpus") != "":
		return n
	case nodes*perNode > 0:
		return nodes * perNode
	case r.Str("dp") != "":
		product := 1
		for _, c := range []string{"dp", "tp", "pp", "cp"} {
			if product *= max(r.Count(c), 1); product > table.MaxDevices {
				return product
			}
		}
		return product
	}
	return min(nodes, table.MaxDevices) * r.usualNode(0, 0)
}

// usualNode returns the assumed devices per node.
func (r *publishedRow) usualNode(n, nodes int) int {
	if nodes > 0 && n%nodes == 0 {
		return n / nodes
	}
	if node, ok := r.node(); ok && node.Devices > 1 {
		return node.Devices
	}
	return 8
}

// node returns the machines of the source: those its document describes, else the accelerator's
// usual ones.
func (r *publishedRow) node() (spec.Node, bool) {
	acc := r.m.Config.Accelerator.Name
	if name := cmp.Or(r.document().nodes[acc], r.source.nodes[acc]); name != "" {
		if n, err := catalog.Node(name); err == nil {
			return n, true
		}
	}
	return catalog.NodeFor(acc)
}

// linkOf is what determines the network of a row.
type linkOf struct {
	source      *publishedSource
	document    string
	accelerator string
	rack        bool   // all inside one domain of the scale-up link
	gbps        string // network of a node, as recorded
}

// link returns the known rates of the network of the source's machines.
func (r *publishedRow) link() spec.Link {
	acc := r.m.Config.Accelerator.Name
	key := linkOf{r.source, r.Str("source_path"), acc, r.m.Config.Shape.Total() <= r.m.Config.Accelerator.ScaleUpDomain(), r.Str("network_gbps")}
	if l, ok := r.table.links[key]; ok {
		return l
	}
	node, _ := r.node()
	l := node.Link
	if gbps := r.document().gbps[acc]; gbps > 0 {
		l.InterBps = gbps * 1e9 / 8
	}
	if key.gbps != "" {
		l.InterBps = r.AtLeast0("network_gbps") * 1e9 / 8
	}
	if key.rack {
		l.InterBps = float64(node.Devices) * l.IntraBps
	}
	if r.Err() == nil {
		r.table.links[key] = l
	}
	return l
}
