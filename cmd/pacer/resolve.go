package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/planner"
)

// acceleratorName returns the catalog's name of an accelerator, or name itself
// when the catalog has none such: measurements may be on other parts.
func acceleratorName(name string) string {
	if a, err := catalog.Accelerator(name); err == nil {
		return a.Name
	}
	return name
}

func acceleratorNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = acceleratorName(n)
	}
	return out
}

// newDesk answers questions from the data directory.
func newDesk(c *cli.Context) (*ask.Desk, error) {
	reg, err := openRegistry(c)
	if err != nil {
		return nil, err
	}
	return &ask.Desk{
		Read:   reader(c),
		Fitted: reg,
		Warn:   func(err error) { fmt.Fprintln(c.App.ErrWriter, "warning:", err) },
	}, nil
}

// questionFlags are shared by predict, plan, curve and fit-check.
func questionFlags() []cli.Flag {
	return append(append(interconnectFlags(), shapeFlags()...),
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "`MODEL` to train, see pacer ls models, or a Hugging Face config.json"},
		&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "`TYPE` of device, see pacer ls accelerators"},
		&cli.IntFlag{Name: "global-batch", Aliases: []string{"b"}, Usage: "`SAMPLES` per optimizer step", DefaultText: "none"},
		&cli.IntFlag{Name: "seq", Usage: "`TOKENS` per sample", DefaultText: "the model's own"},
		&cli.IntFlag{Name: "per-node", Usage: "`DEVICES` per node", DefaultText: "those of the accelerator's usual node, see pacer ls nodes"},
		&cli.StringFlag{Name: "node", Usage: "`TYPE` of machine the devices are in, see pacer ls nodes", DefaultText: "the accelerator's usual one"},
		&cli.StringFlag{Name: "framework", Usage: "training `STACK`, such as Megatron-LM, FSDP, pacer-torch", DefaultText: "that of the measurements, else today's Megatron Core"},
		&cli.StringFlag{Name: "precision", Usage: "`FORMAT` of the multiplications: fp32 tf32 fp16 bf16 fp8 mxfp8 fp8-rowwise fp4", DefaultText: "that of the measurements, else bf16, else fp16"},
		&cli.StringFlag{Name: "family", Value: ask.Auto, Usage: "`FAMILY` of performance model; auto: one fitted to the model here that beats the analytic one on held-out rows, else the analytic one; with predict --in: hybrid"},
	)
}

// question is a planning question as asked for: what, and whom to ask.
type question struct {
	planner.Request
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string    // of predictor
	going     ask.Going // whether a running job should go over to the best plan
}

// newQuestion reads the question flags; the device count is the caller's.
func newQuestion(c *cli.Context) (question, error) {
	return resolve(c, nil)
}

// resolve looks up what the question flags say, of one plan unless fixed is nil.
func resolve(c *cli.Context, fixed *ask.Fixed) (question, error) {
	return resolveOn(c, c.String("accelerator"), fixed)
}

// resolveOn is resolve for another accelerator than the flag's.
func resolveOn(c *cli.Context, accelerator string, fixed *ask.Fixed) (question, error) {
	if err := checkOutput(c); err != nil {
		return question{}, err
	}
	asked, err := askedFor(c)
	if err == nil && fixed == nil && !c.IsSet("global-batch") && !c.IsSet("max-batch") {
		err = usagef("%s: --global-batch is missing: how many samples per optimizer step?", c.Command.Name)
	}
	if err != nil {
		return question{}, err
	}
	asked.Accelerator = accelerator
	d, err := newDesk(c)
	if err != nil {
		return question{}, err
	}
	r, err := d.Resolve(c.Context, asked)
	if err == nil && fixed != nil {
		err = r.Fix(&asked, *fixed)
	}
	if err != nil {
		return question{}, hintDirectory(c, asFlag(c, err))
	}
	space, err := readSpace(c)
	if err != nil {
		return question{}, err
	}
	return question{Request: r.Request, planner: planner.New(r.Predictor, planner.Options{Space: space}), predictor: r.Predictor, family: r.Family}, nil
}

// askedFor is what the question flags say.
func askedFor(c *cli.Context) (ask.Question, error) {
	q := ask.Question{
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
			return q, usagef("%s: --%s is missing; pacer ls %ss lists the known ones", c.Command.Name, f, f)
		}
	}
	for flag, most := range map[string]int{"global-batch": ask.MaxBatch, "seq": ask.MaxSeq, "per-node": ask.MaxDevices} {
		if !c.IsSet(flag) {
			continue
		}
		if err := inRange(c, flag, c.Int(flag), most); err != nil {
			return q, err
		}
	}
	_, err = readLinkFlags(c)
	return q, err
}

// flagOf is the flag a field of a question is read from.
func flagOf(field string) string { return "--" + strings.ReplaceAll(field, "_", "-") }

// asFlag names the flag a field of a question is read from.
func asFlag(c *cli.Context, err error) error {
	var bad *ask.FieldError
	if !errors.As(err, &bad) || bad.Err != nil {
		return err
	}
	return usagef("%s: %s", c.Command.Name, bad.Named(flagOf))
}

func inRange(c *cli.Context, flag string, n, most int) error {
	if n < 1 || n > most {
		return usagef("%s: --%s %d is not in 1..%d", c.Command.Name, flag, n, most)
	}
	return nil
}

// devicesFlag reads a device count.
func devicesFlag(c *cli.Context, name string) (int, error) {
	if !c.IsSet(name) {
		return 0, usagef("%s: --%s is missing", c.Command.Name, name)
	}
	return c.Int(name), inRange(c, name, c.Int(name), ask.MaxDevices)
}
