package main

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

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/huggingface"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// shapeCounts are the numbers of a model of one's own, with the most each may be.
var shapeCounts = []struct {
	name, usage string
	most        int
	to          func(*spec.Model) *int
}{
	{"layers", "transformer layers", 1 << 12, func(m *spec.Model) *int { return &m.Layers }},
	{"hidden", "hidden size", 1 << 20, func(m *spec.Model) *int { return &m.Hidden }},
	{"heads", "query heads per layer", 1 << 20, func(m *spec.Model) *int { return &m.Heads }},
	{"kv-heads", "key/value heads per layer", 1 << 20, func(m *spec.Model) *int { return &m.KVHeads }},
	{"head-dim", "width of a head", 1 << 20, func(m *spec.Model) *int { return &m.HeadDim }},
	{"ffn", "inner width of the MLP", 1 << 20, func(m *spec.Model) *int { return &m.FFN }},
	{"vocab", "tokens of vocabulary", 1 << 24, func(m *spec.Model) *int { return &m.Vocab }},
	{"experts", "routed experts per layer", 1 << 20, func(m *spec.Model) *int { return &m.Experts }},
	{"experts-per-token", "experts a token visits", 1 << 20, func(m *spec.Model) *int { return &m.ExpertsPerToken }},
	{"expert-ffn", "inner width of one expert", 1 << 20, func(m *spec.Model) *int { return &m.ExpertFFN }},
	{"shared-experts", "experts that every token visits", 1 << 20, func(m *spec.Model) *int { return &m.SharedExperts }},
}

// shapeDefaults are the defaults of those numbers.
var shapeDefaults = map[string]string{
	"kv-heads": "heads", "head-dim": "hidden / heads", "experts": "none", "experts-per-token": "2", "expert-ffn": "ffn", "shared-experts": "none",
}

// shapeFlags are the settings of --model for a model of one's own.
func shapeFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range shapeCounts {
		text := shapeDefaults[f.name]
		if text == "" {
			text = "none"
		}
		out = append(out, &cli.IntFlag{Name: f.name, Usage: f.usage, DefaultText: text})
	}
	return append(out,
		&cli.StringFlag{Name: "mlp", Value: "gated", Usage: "form of the MLP: gated (three matrices) or plain (two)"},
		&cli.BoolFlag{Name: "tied-embeddings", Usage: "whether input and output embeddings are one matrix"},
		&cli.StringFlag{Name: "params", Usage: "number of parameters, such as 7e9, 350M or 8.03B; alone it means a GPT of that size", DefaultText: "counted"},
	)
}

// networkOf returns the model a question brings along, in a config.json or in
// flags; the zero Model where it names one.
func networkOf(c *cli.Context) (spec.Model, error) {
	path, isFile := configPath(c.String("model"))
	given := givenShape(c)
	switch {
	case isFile && len(given) > 0:
		return spec.Model{}, fail.Usagef("%s: --%s does not go with --model %s, which has the shape", c.Command.Name, given[0], path)
	case isFile:
		return readConfigJSON(c, path)
	case len(given) > 0:
		return shapeOfFlags(c, given)
	}
	return spec.Model{}, nil
}

// givenShape lists the flags of shapeFlags that were given.
func givenShape(c *cli.Context) (out []string) {
	for _, f := range shapeFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			out = append(out, name)
		}
	}
	return out
}

// configPath returns the file a --model names: what ends in .json, is a file, or
// is a path to a directory with a config.json.
func configPath(name string) (string, bool) {
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

func readConfigJSON(c *cli.Context, path string) (spec.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return spec.Model{}, fail.Usagef("%s: --model %s: %w; models by name are in pacer ls models", c.Command.Name, path, errors.Unwrap(err))
	}
	defer f.Close()
	m, warnings, err := huggingface.Read(f)
	if err != nil {
		return spec.Model{}, fail.Usagef("%s: --model %s: %w", c.Command.Name, path, err)
	}
	if m.Name = nameOfConfig(path, m.Name); m.SeqLen == 0 && !c.IsSet("seq") {
		return m, fail.Usagef("%s: --seq is missing: %s does not say how many tokens a sample has", c.Command.Name, path)
	}
	for _, w := range warnings {
		switch assumed := errors.Is(w, huggingface.ErrTokensAssumed); {
		case !assumed:
			fmt.Fprintf(c.App.ErrWriter, "warning: %s: %v\n", path, w)
		case !c.IsSet("seq"):
			fmt.Fprintf(c.App.ErrWriter, "warning: %s: %v; --seq says otherwise\n", path, w)
		}
	}
	return m, nil
}

// hintDirectory adds to an error about an unknown model that a directory of that
// name holds a config.json.
func hintDirectory(c *cli.Context, err error) error {
	name := c.String("model")
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) || unknown.What != "model" || name != filepath.Base(name) {
		return err
	}
	inside, isFile := configPath("." + string(filepath.Separator) + name)
	if !isFile {
		return err
	}
	return fmt.Errorf("%w\n%s is here: --model .%c%s takes it", err, inside, filepath.Separator, name)
}

// nameOfConfig names the model of a file: as the file says, unless that is only
// its architecture; as the file is called; as its directory is.
func nameOfConfig(path, says string) string {
	base := filepath.Base(path)
	if base != "config.json" {
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	if !slices.Contains(huggingface.Architectures(), says) {
		return says
	}
	if abs, err := filepath.Abs(path); err == nil && filepath.Base(filepath.Dir(abs)) != string(filepath.Separator) {
		return filepath.Base(filepath.Dir(abs))
	}
	return says
}

// shapeOfFlags reads a model from the given flags.
func shapeOfFlags(c *cli.Context, given []string) (spec.Model, error) {
	m := spec.Model{Name: c.String("model"), Kind: spec.Decoder, TiedEmbeddings: c.Bool("tied-embeddings"), SeqLen: c.Int("seq")}
	if known, err := catalog.Model(m.Name); err == nil {
		return m, fail.Usagef("%s: --%s does not go with name %s, which is known: give your model a name of its own, or none", c.Command.Name, given[0], known.Name)
	}
	for _, f := range shapeCounts {
		if !c.IsSet(f.name) {
			continue
		}
		*f.to(&m) = c.Int(f.name)
		if err := command.InRange(c, f.name, c.Int(f.name), f.most); err != nil {
			return m, err
		}
	}
	switch form := c.String("mlp"); form {
	case "gated", "plain":
		m.GatedMLP = form == "gated"
	default:
		return m, fail.Usagef("%s: --mlp %s is neither gated nor plain", c.Command.Name, form)
	}
	var err error
	if m.ParamCount, err = paramsFlag(c); err != nil {
		return m, err
	}
	if m.SeqLen == 0 {
		return m, fail.Usagef("%s: --seq is missing: how many tokens has a sample?", c.Command.Name)
	}
	if !slices.ContainsFunc(given, func(f string) bool { return f != "params" && f != "vocab" }) && m.ParamCount > 0 {
		guessShape(c, &m)
		return m, nil
	}
	return m, completeShape(c, &m)
}

// guessShape makes m a GPT of its number of parameters.
func guessShape(c *cli.Context, m *spec.Model) {
	m.Name = cmp.Or(m.Name, "GPT-"+strings.ReplaceAll(console.Count(m.ParamCount), " ", ""))
	m.GatedMLP = false
	*m, _ = memory.GuessShape(*m)
	fmt.Fprintf(c.App.ErrWriter, "warning: taken as %d layers of width %d; keys layers, hidden, heads, ffn and vocab of --model say otherwise\n", m.Layers, m.Hidden)
}

// completeShape fills in what follows, and says what is missing.
func completeShape(c *cli.Context, m *spec.Model) error {
	for _, f := range shapeCounts {
		if _, optional := shapeDefaults[f.name]; !optional && *f.to(m) == 0 && (f.name != "ffn" || m.Experts == 0 || m.ExpertFFN == 0) {
			return fail.Usagef("%s: --%s is missing: a model of your own needs layers, hidden, heads, ffn and vocab, or params alone", c.Command.Name, f.name)
		}
	}
	if m.Experts > 0 {
		if m.ExpertsPerToken == 0 {
			m.ExpertsPerToken = min(2, m.Experts)
		}
		if m.ExpertFFN == 0 {
			m.ExpertFFN = m.FFN
		}
	}
	if m.HeadDim == 0 && m.Hidden%m.Heads != 0 {
		return fail.Usagef("%s: --heads %d does not divide --hidden %d, and there is no --head-dim", c.Command.Name, m.Heads, m.Hidden)
	}
	if m.KVHeads > 0 && m.Heads%m.KVHeads != 0 {
		return fail.Usagef("%s: --kv-heads %d does not divide --heads %d", c.Command.Name, m.KVHeads, m.Heads)
	}
	m.Name = cmp.Or(m.Name, fmt.Sprintf("%dx%d", m.Layers, m.Hidden))
	if err := m.Validate(); err != nil {
		return fail.Usagef("%s: %w", c.Command.Name, err)
	}
	return nil
}

// maxParams bounds --params: a thousand times the largest network there is.
const maxParams = 1e16

// paramsFlag reads --params: a number, with K, M, B or T for thousands to
// trillions.
func paramsFlag(c *cli.Context) (float64, error) {
	if !c.IsSet("params") {
		return 0, nil
	}
	text := strings.TrimSpace(c.String("params"))
	digits, unit := text, 1.0
	if n := len(text) - 1; n > 0 {
		if i := strings.IndexByte("KMBT", strings.ToUpper(text)[n]); i >= 0 {
			digits, unit = text[:n], math.Pow(1000, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if v *= unit; err != nil || !(v >= 1 && v <= maxParams) {
		return 0, fail.Usagef("%s: --params %s is not a count in 1..%g, such as 7e9 or 350M", c.Command.Name, c.String("params"), float64(maxParams))
	}
	return v, nil
}
