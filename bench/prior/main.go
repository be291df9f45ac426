package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tables are the training data sets, each with its importer and its sources; no sources mean all.
var tables = []struct {
	dir, importer string
	sources       []string
}{
	{"published", "published", []string{"bigscience", "fms_fsdp", "internevo", "korthikanti_2205_05198", "litgpt", "megatron_bridge", "megatron_sc21", "nemo_2407", "torchtitan"}},
	{"field", "published", nil},
	{"rubick", "rubick", nil},
	{"sia", "sia", []string{"aws", "rtx", "dgx-ext", "azure", "quad"}},
	{"dl2", "dl2", nil},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prior:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 3 {
		return errors.New("want two arguments, a directory with published, field, rubick, sia and dl2, and the one of package family")
	}
	rows, err := accuracy.OwnRows()
	if err != nil {
		return err
	}
	for _, t := range tables {
		of, err := read(ctx, t.importer, filepath.Join(os.Args[1], t.dir), t.sources)
		if err != nil {
			return err
		}
		rows = append(rows, of...)
	}
	p, err := hybrid.Train(ctx, rows)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(os.Args[2], "analytic/prior.json"), p.Constants()); err != nil {
		return err
	}
	return write(filepath.Join(os.Args[2], "hybrid/prior.json"), p)
}

// write writes v to a file as JSON.
func write(name string, v any) error {
	out, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(out, '\n'), 0o644)
}

// read returns the rows of sources in dir that can be read; bad rows are left
// out.
func read(ctx context.Context, name, dir string, sources []string) (rows []spec.Measurement, err error) {
	all, _, err := datasets.ReadAll(ctx, name, os.DirFS(dir))
	for _, m := range all {
		if sources == nil || slices.Contains(sources, strings.TrimPrefix(m.Source, name+"/")) {
			rows = append(rows, m)
		}
	}
	return rows, err
}
