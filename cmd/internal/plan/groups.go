package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// Groups are the flags that hold several settings.
var Groups = command.Groups{
	{Name: "network", Parts: interconnectFlags},
	{Name: "space", Parts: spaceFlags},
	{Name: "axes", Parts: axesFlags},
	{Name: "move", Parts: moveParts},
	{Name: "objective", Parts: objectiveParts, Split: splitNamed("objective")},
	{Name: "probe", Parts: probeParts, Split: splitNamed("probe"), Verbatim: true},
	{Name: "batch-range", Parts: batchRangeParts, Split: splitRange},
	{Name: "model", Parts: modelParts, Split: splitModel},
}

// splitNamed reads VALUE[:KEY=VALUE...] of a flag.
func splitNamed(flag string) func(value string) ([]string, error) {
	return func(value string) ([]string, error) {
		items := strings.Split(value, ":")
		items[0] = flag + "=" + items[0]
		return items, nil
	}
}

// splitRange reads MIN-MAX.
func splitRange(value string) ([]string, error) {
	lo, hi, ok := strings.Cut(value, "-")
	if !ok {
		return nil, fmt.Errorf("is not MIN-MAX, such as 64-2048")
	}
	return []string{"min-batch=" + lo, "max-batch=" + hi}, nil
}

// splitModel reads KEY=VALUE,... or a YAML file of such keys; any other value is the name of a
// model or its config.json.
func splitModel(value string) ([]string, error) {
	if _, err := os.Stat(value); err != nil && strings.Contains(value, "=") {
		items := strings.Split(value, ",")
		for i, item := range items {
			if name, ok := strings.CutPrefix(item, "name="); ok {
				items[i] = "model=" + name
			}
		}
		return items, nil
	}
	ext := strings.ToLower(filepath.Ext(value))
	if ext != ".yaml" && ext != ".yml" {
		return []string{"model=" + value}, nil
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return nil, err
	}
	f := &yamlfile.File{Name: value, Package: "spec", Kind: "model"}
	keys, items := []string{"name"}, []string(nil)
	for _, part := range modelParts() {
		keys = append(keys, part.Names()[0], strings.ReplaceAll(part.Names()[0], "-", "_"))
	}
	for _, e := range f.Parse(text).Entries(keys...) {
		items = append(items, strings.Replace(e.Key, "name", "model", 1)+"="+e.Value.Scalar())
	}
	return items, f.Err()
}

// modelParts are the name of a model and the numbers of a model that is not in the catalog.
func modelParts() []cli.Flag {
	return append(shapeFlags(), &cli.StringFlag{Name: "model"})
}
