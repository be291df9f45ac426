package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/urfave/cli/v2"
)

// shapeFlags are the settings of --model for a model that is not in the catalog.
func shapeFlags() []cli.Flag {
	var out []cli.Flag
	for _, f := range query.ModelCounts {
		out = append(out, &cli.IntFlag{Name: f.Name, Usage: f.Usage, DefaultText: cmp.Or(f.Default, "none")})
	}
	return append(out,
		&cli.StringFlag{Name: "mlp", Value: "gated", Usage: "form of the MLP: gated (three matrices) or plain (two)"},
		&cli.BoolFlag{Name: "tied-embeddings", Usage: "whether input and output embeddings are one matrix"},
		&cli.StringFlag{Name: "params", Usage: "number of parameters, such as 7e9, 350M or 8.03B; alone it means a GPT of that size", DefaultText: "counted"},
	)
}

// networkOf returns the model that a config.json or flags describe; the zero Model if --model is
// a name.
func networkOf(c *cli.Context) (m spec.Model, err error) {
	path, isFile := query.ConfigPath(c.String("model"))
	own := ownModel(c)
	var warnings []string
	switch {
	case isFile && len(own.Given) > 0:
		return m, fail.Usagef("%s: --%s conflicts with --model %s, which has the shape", c.Command.Name, own.Given[0], path)
	case isFile:
		m, warnings, err = query.ReadConfig(path, c.IsSet("seq"))
	case len(own.Given) > 0:
		var warning string
		if m, warning, err = own.Model(); warning != "" {
			warnings = append(warnings, warning)
		}
	}
	for _, w := range warnings {
		fmt.Fprintln(c.App.ErrWriter, "warning:", w)
	}
	return m, command.ForVerb(c, err)
}

// ownModel reads shapeFlags.
func ownModel(c *cli.Context) query.OwnModel {
	o := query.OwnModel{Name: c.String("model"), Seq: c.Int("seq"), Counts: map[string]int{}, MLP: c.String("mlp"), TiedEmbeddings: c.Bool("tied-embeddings"), Params: c.String("params")}
	for _, f := range shapeFlags() {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		o.Given = append(o.Given, name)
		if _, ok := f.(*cli.IntFlag); ok {
			o.Counts[name] = c.Int(name)
		}
	}
	return o
}

// hintDirectory adds a hint to the error of an unknown model if a directory of that name has a
// config.json.
func hintDirectory(c *cli.Context, err error) error {
	name := c.String("model")
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) || unknown.What != "model" || name != filepath.Base(name) {
		return err
	}
	inside, isFile := query.ConfigPath("." + string(filepath.Separator) + name)
	if !isFile {
		return err
	}
	return fmt.Errorf("%w\n%s is here: --model .%c%s takes it", err, inside, filepath.Separator, name)
}
