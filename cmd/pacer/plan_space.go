package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// spaceFlags narrow or widen the plans that are proposed.
func spaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "zero", Usage: "ZeRO `STAGES` considered, such as 0,1", DefaultText: "0,1,2,3"},
		&cli.StringFlag{Name: "recompute", Usage: "recompute `MODES` considered", DefaultText: "none,selective,full"},
		&cli.StringFlag{Name: "offload", Usage: "offload `MODES` considered", DefaultText: "none,optimizer,params"},
		&cli.StringFlag{Name: "schedule", Usage: "pipeline `SCHEDULES` considered: 1f1b gpipe zb-h1 zb-h2 zb-v", DefaultText: "1f1b, interleaved too"},
		&cli.StringFlag{Name: "precisions", Usage: "`FORMATS` considered, such as bf16,fp8, of which the device's count", DefaultText: "the one of --precision"},
		&cli.IntFlag{Name: "max-micro-batch", Usage: "largest micro-batch of `SAMPLES`", DefaultText: "no bound"},
		&cli.BoolFlag{Name: "tp-across-nodes", Usage: "let tensor parallel groups span nodes"},
	}
}

// readSpace reads spaceFlags; without any, or in a command that has none, the
// space is the default one.
func readSpace(c *cli.Context) (planner.Space, error) {
	e := planner.Enumerate{MaxMicroBatch: c.Int("max-micro-batch"), TPAcrossNodes: c.Bool("tp-across-nodes")}
	if c.IsSet("max-micro-batch") && e.MaxMicroBatch < 1 {
		return nil, usagef("%s: --max-micro-batch %d is below 1", c.Command.Name, e.MaxMicroBatch)
	}
	var err error
	if e.ZeRO, err = listFlag(c, "zero", map[string]int{"0": 0, "1": 1, "2": 2, "3": 3}); err != nil {
		return nil, err
	}
	if e.Recompute, err = listFlag(c, "recompute", byName(spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull)); err != nil {
		return nil, err
	}
	if e.Offload, err = listFlag(c, "offload", byName(spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams)); err != nil {
		return nil, err
	}
	if e.Precisions, err = listFlag(c, "precisions", byName(spec.Precisions()...)); err != nil {
		return nil, err
	}
	if c.IsSet("precisions") && c.IsSet("precision") {
		return nil, usagef("%s: --precision names one format and --precisions those to choose from: give one of them", c.Command.Name)
	}
	e.Schedules, err = listFlag(c, "schedule", byName(append(spec.Schedules(), spec.Schedule1F1B)...))
	return e, err
}

func byName[T ~string](values ...T) map[string]T {
	out := map[string]T{}
	for _, v := range values {
		if v != "" {
			out[string(v)] = v
		}
	}
	return out
}

// listFlag reads a comma-separated list of values known by name; nil where the
// flag is not given.
func listFlag[T comparable](c *cli.Context, flag string, known map[string]T) ([]T, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	var out []T
	for _, name := range strings.Split(c.String(flag), ",") {
		v, ok := known[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			return nil, usagef("%s: --%s %s is not one of %s", c.Command.Name, flag, name, strings.Join(slices.Sorted(maps.Keys(known)), " "))
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, nil
}
