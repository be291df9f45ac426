package query

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/huggingface"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ModelCount is a number of an OwnModel.
type ModelCount struct {
	Name, Usage string
	Default     string // "" = required
	most        int
	to          func(*spec.Model) *int
}

// ModelCounts are the numbers of an OwnModel.
var ModelCounts = []ModelCount{
	{"layers", "transformer layers", "", 1 << 12, func(m *spec.Model) *int { return &m.Layers }},
	{"hidden", "hidden size", "", 1 << 20, func(m *spec.Model) *int { return &m.Hidden }},
	{"heads", "query heads per layer", "", 1 << 20, func(m *spec.Model) *int { return &m.Heads }},
	{"kv-heads", "key/value heads per layer", "heads", 1 << 20, func(m *spec.Model) *int { return &m.KVHeads }},
	{"head-dim", "width of a head", "hidden / heads", 1 << 20, func(m *spec.Model) *int { return &m.HeadDim }},
	{"ffn", "inner width of the MLP", "", 1 << 20, func(m *spec.Model) *int { return &m.FFN }},
	{"vocab", "tokens of vocabulary", "", 1 << 24, func(m *spec.Model) *int { return &m.Vocab }},
	{"experts", "routed experts per layer", "none", 1 << 20, func(m *spec.Model) *int { return &m.Experts }},
	{"experts-per-token", "experts a token visits", "2", 1 << 20, func(m *spec.Model) *int { return &m.ExpertsPerToken }},
	{"expert-ffn", "inner width of one expert", "ffn", 1 << 20, func(m *spec.Model) *int { return &m.ExpertFFN }},
	{"shared-experts", "experts that every token visits", "none", 1 << 20, func(m *spec.Model) *int { return &m.SharedExperts }},
	{"expert-hidden", "width to which tokens are projected before routed experts", "hidden", 1 << 20, func(m *spec.Model) *int { return &m.ExpertHidden }},
	{"node-limit", "nodes on which the experts of a token are at most", "none", 1 << 20, func(m *spec.Model) *int { return &m.NodeLimit }},
	{"mtp-layers", "modules for multi-token prediction", "none", 1 << 12, func(m *spec.Model) *int { return &m.MTPLayers }},
	{"sliding-window", "tokens that a layer with a sliding window sees", "none", 1 << 26, func(m *spec.Model) *int { return &m.Window }},
	{"sliding-window-layers", "layers with the window", "all with sliding-window, else none", 1 << 12, func(m *spec.Model) *int { return &m.WindowLayers }},
	{"ssm-layers", "layers with a Mamba 2 mixer instead of attention", "none", 1 << 12, func(m *spec.Model) *int { return &m.SSMLayers }},
	{"ssm-heads", "heads of a mixer", "2 x hidden / ssm-head-dim", 1 << 20, func(m *spec.Model) *int { return &m.SSMHeads }},
	{"ssm-head-dim", "width of such a head", "64", 1 << 20, func(m *spec.Model) *int { return &m.SSMHeadDim }},
	{"ssm-state", "width of the state of such a head", "128", 1 << 20, func(m *spec.Model) *int { return &m.SSMState }},
	{"ssm-groups", "groups of heads that share B and C", "1", 1 << 20, func(m *spec.Model) *int { return &m.SSMGroups }},
	{"mlp-layers", "layers that are an MLP alone; the others then have none", "every layer has one", 1 << 12, func(m *spec.Model) *int { return &m.MLPLayers }},
}

// OwnModel describes a model that is not in the catalog.
type OwnModel struct {
	Name           string
	Seq            int
	Given          []string       // the fields that are given, such as layers
	Counts         map[string]int // by name in ModelCounts, the given ones
	MLP            string         // gated or plain
	TiedEmbeddings bool
	Params         string // number of parameters, such as 350M; "" = counted
}

// Model returns the described model, and a warning if its shape was guessed. Errors are
// *FieldError.
func (o *OwnModel) Model() (m spec.Model, warning string, err error) {
	m = spec.Model{Name: o.Name, Kind: spec.Decoder, TiedEmbeddings: o.TiedEmbeddings, SeqLen: o.Seq}
	if known, err := catalog.Model(m.Name); err == nil {
		return m, "", &FieldError{Field: o.Given[0], Value: "", Why: fmt.Sprintf("conflicts with name %s, which the catalog has: choose another name, or none", known.Name)}
	}
	for _, f := range ModelCounts {
		n, ok := o.Counts[f.Name]
		if !ok {
			continue
		}
		if err := InRange(f.Name, n, f.most); err != nil {
			return m, "", err
		}
		*f.to(&m) = n
	}
	if o.MLP != "gated" && o.MLP != "plain" {
		return m, "", &FieldError{Field: "mlp", Value: o.MLP, Why: "is neither gated nor plain"}
	}
	m.GatedMLP = o.MLP == "gated"
	if m.ParamCount, err = o.params(); err != nil {
		return m, "", err
	}
	if m.SeqLen == 0 {
		return m, "", &FieldError{Field: "seq", Value: "", Why: "is missing: how many tokens has a sample?"}
	}
	if m.ParamCount > 0 && !slices.ContainsFunc(o.Given, func(f string) bool { return f != "params" && f != "vocab" }) {
		m.Name = cmp.Or(m.Name, "GPT-"+strings.ReplaceAll(number.Count(m.ParamCount), " ", ""))
		m.GatedMLP = false
		m, _ = memory.GuessShape(m)
		return m, fmt.Sprintf("assumes %d layers of width %d; keys layers, hidden, heads, ffn and vocab of --model replace them", m.Layers, m.Hidden), nil
	}
	return m, "", complete(&m)
}

// complete fills in defaults and checks the shape.
func complete(m *spec.Model) error {
	onlySSM := m.SSMLayers > 0 && m.SSMLayers == m.Layers
	for _, f := range ModelCounts {
		if onlySSM && (f.Name == "heads" || f.Name == "ffn") {
			continue
		}
		if f.Default == "" && *f.to(m) == 0 && (f.Name != "ffn" || m.Experts == 0 || m.ExpertFFN == 0) {
			return &FieldError{Field: f.Name, Value: "", Why: "is missing: your own model needs layers, hidden, heads, ffn and vocab, or params alone"}
		}
	}
	if m.Experts > 0 {
		m.ExpertsPerToken = cmp.Or(m.ExpertsPerToken, min(2, m.Experts))
		m.ExpertFFN = cmp.Or(m.ExpertFFN, m.FFN)
	}
	hybridDefaults(m)
	if m.HeadDim == 0 && m.Heads > 0 && m.Hidden%m.Heads != 0 {
		return &FieldError{Field: "heads", Value: m.Heads, Why: fmt.Sprintf("does not divide {hidden} %d, and there is no {head_dim}", m.Hidden)}
	}
	if m.KVHeads > 0 && m.Heads > 0 && m.Heads%m.KVHeads != 0 {
		return &FieldError{Field: "kv_heads", Value: m.KVHeads, Why: fmt.Sprintf("does not divide {heads} %d", m.Heads)}
	}
	m.Name = cmp.Or(m.Name, fmt.Sprintf("%dx%d", m.Layers, m.Hidden))
	if err := m.Validate(); err != nil {
		return &FieldError{Field: "model", Value: m.Name, Err: err}
	}
	counted := *m
	counted.ParamCount = 0
	if n := counted.Params(); m.ParamCount > 2*n { // fewer are possible: layers may share weights
		return &FieldError{Field: "params", Value: m.ParamCount, Why: fmt.Sprintf("contradicts the layers, which have %s parameters", number.Count(n))}
	}
	return nil
}

// hybridDefaults fills in the settings of windows and state-space mixers: those of Mamba 2 (Dao and Gu 2024,
// arXiv 2405.21060).
func hybridDefaults(m *spec.Model) {
	if m.Window > 0 && m.WindowLayers == 0 {
		m.WindowLayers = m.AttentionLayers()
	}
	if m.SSMLayers > 0 {
		m.SSMHeadDim = cmp.Or(m.SSMHeadDim, 64)
		m.SSMHeads = cmp.Or(m.SSMHeads, 2*m.Hidden/m.SSMHeadDim)
		m.SSMState, m.SSMGroups = cmp.Or(m.SSMState, 128), cmp.Or(m.SSMGroups, 1)
	}
}

// maxParams bounds the number of parameters, a thousand times above the largest network.
const maxParams = 1e16

// params reads Params: a number, with K, M, B or T for thousands to trillions.
func (o *OwnModel) params() (float64, error) {
	if !slices.Contains(o.Given, "params") {
		return 0, nil
	}
	text := strings.TrimSpace(o.Params)
	digits, unit := text, 1.0
	if n := len(text) - 1; n > 0 {
		if i := strings.IndexByte("KMBT", strings.ToUpper(text)[n]); i >= 0 {
			digits, unit = text[:n], math.Pow(1000, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if v *= unit; err != nil || !(v >= 1 && v <= maxParams) {
		return 0, &FieldError{Field: "params", Value: o.Params, Why: fmt.Sprintf("is not a count in 1..%g, such as 7e9 or 350M", float64(maxParams))}
	}
	return v, nil
}

// ConfigPath returns the file that a model is named by: a name that ends in .json, a file, or a
// path to a directory with a config.json.
func ConfigPath(name string) (string, bool) {
	if strings.HasSuffix(strings.ToLower(name), ".json") {
		return name, true
	}
	st, err := os.Stat(name)
	switch {
	case name == "" || err != nil:
		return "", false
	case st.Mode().IsRegular():
		return name, true
	}
	inside := filepath.Join(name, "config.json")
	if _, err := os.Stat(inside); err != nil || !strings.ContainsRune(name, filepath.Separator) {
		return "", false
	}
	return inside, true
}

// ReadConfig reads the model of a Hugging Face config.json. seq reports that the length of a
// sample is given elsewhere. Errors are *FieldError.
func ReadConfig(path string, seq bool) (m spec.Model, warnings []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, nil, &FieldError{Field: "model", Value: path, Err: fmt.Errorf("{model} %s: %w; models by name are in pacer ls models", path, errors.Unwrap(err))}
	}
	defer f.Close()
	m, notes, err := huggingface.Read(f)
	if err != nil {
		return m, nil, &FieldError{Field: "model", Value: path, Err: fmt.Errorf("{model} %s: %w", path, err)}
	}
	if m.Name = nameOfConfig(path, m.Name); m.SeqLen == 0 && !seq {
		return m, nil, &FieldError{Field: "seq", Value: "", Why: "is missing: " + path + " does not have the number of tokens of a sample"}
	}
	for _, w := range notes {
		switch assumed := errors.Is(w, huggingface.ErrTokensAssumed); {
		case !assumed:
			warnings = append(warnings, fmt.Sprintf("%s: %v", path, w))
		case !seq:
			warnings = append(warnings, fmt.Sprintf("%s: %v; --seq replaces it", path, w))
		}
	}
	return m, warnings, nil
}

// ReadDetails reads the details of the model of a config.json.
func ReadDetails(path string) (spec.Details, error) {
	f, err := os.Open(path)
	if err != nil {
		return spec.Details{}, err
	}
	defer f.Close()
	d, err := huggingface.Details(f)
	if err != nil {
		err = &FieldError{Field: "model", Value: path, Err: fmt.Errorf("{model} %s: %w", path, err)}
	}
	return d, err
}

// nameOfConfig names the model of a file: by the name in it unless that is only an
// architecture, else by the name of the file or of its directory.
func nameOfConfig(path, inside string) string {
	base := filepath.Base(path)
	if base != "config.json" {
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	if !slices.Contains(huggingface.Architectures(), inside) {
		return inside
	}
	if abs, err := filepath.Abs(path); err == nil && filepath.Base(filepath.Dir(abs)) != string(filepath.Separator) {
		return filepath.Base(filepath.Dir(abs))
	}
	return inside
}
