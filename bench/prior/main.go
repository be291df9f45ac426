package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var sources = []string{"bigscience", "fms_fsdp", "internevo", "korthikanti_2205_05198", "litgpt", "megatron_bridge", "megatron_sc21", "nemo_2407", "torchtitan"}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "prior:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 2 {
		return errors.New("want one argument, the directory of the published tables")
	}
	imp, err := datasets.Lookup("published")
	if err != nil {
		return err
	}
	var rows []spec.Measurement
	for m, err := range imp.Import(ctx, os.DirFS(os.Args[1])) {
		var bad *datasets.RowError
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return err
		}
		if slices.Contains(sources, strings.TrimPrefix(m.Source, "published/")) {
			rows = append(rows, m)
		}
	}
	p, err := family.TrainPrior(ctx, rows)
	if err != nil {
		return err
	}
	out, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(out, '\n'))
	return err
}
