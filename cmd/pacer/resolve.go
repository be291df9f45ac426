package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/planner"
)

// Categories of flags.
const (
	categoryModel     = "Model"
	categoryHardware  = "Hardware"
	categorySpace     = "Search space"
	categoryObjective = "Objective"
	categoryOutput    = "Output"
)

// requestFlags are shared by predict, plan, curve and fit-check.
func requestFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Category: categoryModel,
			Usage: "train `MODEL`, see pacer ls models; or a Hugging Face config.json; or your own model as FILE.yaml or KEY=VALUE,..."},
		&cli.IntFlag{Name: "global-batch", Aliases: []string{"b"}, Usage: "train `SAMPLES` per optimizer step", DefaultText: "none", Category: categoryModel},
		&cli.IntFlag{Name: "seq", Usage: "train samples of `TOKENS`", DefaultText: "the model's own", Category: categoryModel},
		&cli.StringFlag{Name: "framework", Usage: "predict for training `STACK`, such as Megatron-LM, FSDP, pacer-torch", DefaultText: "that of the measurements, else today's Megatron Core", Category: categoryModel},
		&cli.StringFlag{Name: "precision", Usage: "multiply in `FORMAT`: fp32 tf32 fp16 bf16 fp8 mxfp8 fp8-rowwise fp4", DefaultText: "that of the measurements, else bf16, else fp16", Category: categoryModel},
		&cli.StringFlag{Name: "family", Value: query.Auto, Usage: "predict by `FAMILY` of performance model; auto: one fitted to the model here that beats the analytic one on held-out rows, else the analytic one; with predict --in: hybrid", Category: categoryModel},
		&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "use devices of `TYPE`, see pacer ls accelerators", Category: categoryHardware},
		&cli.StringFlag{Name: "node", Usage: "use machines of `TYPE`, see pacer ls nodes", DefaultText: "the accelerator's usual one", Category: categoryHardware},
		&cli.IntFlag{Name: "per-node", Usage: "use `DEVICES` per node", DefaultText: "those of the accelerator's usual node, see pacer ls nodes", Category: categoryHardware},
		command.GroupFlag("network", "replace figures of the interconnect", "inter-node-gbps=400,intra-node-gbytes=450", categoryHardware),
	}
}

// spaceFlag narrows or widens the plans that are proposed.
func spaceFlag() cli.Flag {
	return command.GroupFlag("space", "narrow or widen the plans considered", "zero=0+1,recompute=none,max-micro-batch=2", categorySpace)
}

// batchRangeFlag leaves the global batch free.
func batchRangeFlag() cli.Flag {
	return &cli.StringFlag{Name: "batch-range", Usage: "choose the global batch in `MIN-MAX` samples, instead of --global-batch", DefaultText: "none", Category: categoryObjective}
}

// devicesFlagOf is the number of devices.
func devicesFlagOf(defaultText string) cli.Flag {
	return &cli.IntFlag{Name: "devices", Aliases: []string{"n"}, Usage: "use `N` devices", DefaultText: defaultText, Category: categoryHardware}
}

// question is a request of a plan and the planner that answers it.
type question struct {
	planner.Request
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string          // of predictor
	migration query.Migration // whether a running job should migrate to the best plan
}

// newQuestion reads the question flags; the device count is the caller's.
func newQuestion(c *cli.Context) (question, error) {
	return resolve(c, nil)
}

// resolve looks up what the question flags say, of one plan unless fixed is nil.
func resolve(c *cli.Context, fixed *query.FixedPlan) (question, error) {
	return resolveOn(c, c.String("accelerator"), fixed)
}

// resolveOn is resolve for another accelerator than the flag's.
func resolveOn(c *cli.Context, accelerator string, fixed *query.FixedPlan) (question, error) {
	asked, err := askedFor(c)
	if err == nil && fixed == nil && !c.IsSet("global-batch") && !c.IsSet("max-batch") {
		err = fail.Usagef("%s: --global-batch is missing: how many samples per optimizer step?", c.Command.Name)
	}
	if err != nil {
		return question{}, err
	}
	asked.Accelerator = accelerator
	d, err := dataDir(c).Resolver()
	if err != nil {
		return question{}, err
	}
	r, err := d.Resolve(c.Context, asked)
	if err == nil && fixed != nil {
		err = r.Fix(&asked, *fixed)
	}
	if err != nil {
		return question{}, hintDirectory(c, command.ForVerb(c, err))
	}
	space, err := readSpace(c)
	if err != nil {
		return question{}, err
	}
	return question{Request: r.Request, planner: planner.New(r.Predictor, planner.Options{Space: space}), predictor: r.Predictor, family: r.Family}, nil
}

// askedFor is what the question flags say.
func askedFor(c *cli.Context) (query.Request, error) {
	q := query.Request{
		Model: c.String("model"), Accelerator: c.String("accelerator"), GlobalBatch: c.Int("global-batch"), Seq: c.Int("seq"),
		PerNode: c.Int("per-node"), Node: c.String("node"), Framework: c.String("framework"), Precision: c.String("precision"),
		Family: c.String("family"), InterNodeGbps: c.Float64("inter-node-gbps"), IntraNodeGBytes: c.Float64("intra-node-gbytes"),
	}
	var err error
	if q.Network, err = networkOf(c); err != nil {
		return q, err
	}
	for _, f := range []string{"model", "accelerator"} {
		if c.String(f) == "" && (f != "model" || q.Network.Name == "") {
			return q, fail.Usagef("%s: --%s is missing; pacer ls %ss lists the known ones", c.Command.Name, f, f)
		}
	}
	for flag, most := range map[string]int{"global-batch": query.MaxBatch, "seq": query.MaxSeq, "per-node": query.MaxDevices} {
		if !c.IsSet(flag) {
			continue
		}
		if err := command.InRange(c, flag, c.Int(flag), most); err != nil {
			return q, err
		}
	}
	_, err = readLinkFlags(c)
	return q, err
}

// devicesFlag reads a device count.
func devicesFlag(c *cli.Context, name string) (int, error) {
	if !c.IsSet(name) {
		return 0, fail.Usagef("%s: --%s is missing", c.Command.Name, name)
	}
	return c.Int(name), command.InRange(c, name, c.Int(name), query.MaxDevices)
}
