package calibrate

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// Command is pacer calibrate.
func Command() *cli.Command {
	const measuring, others = "Measuring here", "Measuring elsewhere"
	return &cli.Command{
		Name:  "calibrate",
		Usage: "measure a few plans of a model, fit to them, and report the error before and after",
		Description: `In five minutes, the plans of a model that narrow its intervals most are measured
with PyTorch and fitted. Others are drawn at random and held out of the fit: on
them the errors before and after are reported. The fit that is kept, for plan,
predict and curve, uses all rows. Examples:

   pacer calibrate --model gpt2-xl --accelerator h100 --devices 8 --budget 5m
   pacer calibrate -m bench/campaigns/cpu-smoke.yaml --only gpt-tiny --likely

The plans are those of a campaign file, or the likely ones that fit. Each result
is stored at once: the same command continues after an interruption, or with a
larger --budget; another --label starts over. With --alone plans for more
devices than there are count, too: one device does the work of single ranks of
theirs, without communication.

   pacer calibrate -m llama3-8b -a h100 -n 16 --alone

Without measuring here:

   pacer calibrate -m llama3-8b -a h100 -n 16 --emit megatron --rows my.csv
   pacer calibrate -m llama3-8b -a h100 -n 16 --rows my.csv

The first writes launch files and my.csv; enter the step times there. The second
reads them, with each row predicted by a fit to the others.`,
		Flags: []cli.Flag{
			&cli.PathFlag{Name: "model", Aliases: []string{"m"}, Usage: "calibrate `MODEL`, see pacer ls models; or a Hugging Face config.json; or the models of a campaign file", Category: command.CategoryModel},
			&cli.StringFlag{Name: "only", Usage: "calibrate only `MODEL` of the campaign file", DefaultText: "all", Category: command.CategoryModel},
			&cli.BoolFlag{Name: "likely", Usage: "measure likely plans of the model instead of those of the campaign file", Category: command.CategoryModel},
			&cli.IntFlag{Name: "global-batch", Aliases: []string{"b"}, Usage: "likely plans train `SAMPLES` per step on all devices, and down to a sixteenth", DefaultText: "16 per device", Category: command.CategoryModel},
			&cli.IntFlag{Name: "seq", Usage: "train samples of `TOKENS`", DefaultText: "the model's own", Category: command.CategoryModel},
			&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "use devices of `TYPE`, see pacer ls accelerators; cpu for the CPU", DefaultText: "that of this machine", Category: command.CategoryHardware},
			command.DevicesFlag("all of this machine"),
			&cli.BoolFlag{Name: "alone", Usage: "measure plans for more devices than this machine has, one rank at a time", Category: measuring},
			&cli.DurationFlag{Name: "budget", Value: 5 * time.Minute, Usage: "measure for `TIME`, earlier sessions included", Category: measuring},
			&cli.StringFlag{Name: "label", Aliases: []string{"l"}, Value: "1", Usage: "`NAME` of the calibration: one with stored points is continued", Category: measuring},
			&cli.StringFlag{Name: "runner", Usage: "measure by `NAME`: torchrun, synthetic, or replay:SOURCE of stored rows", DefaultText: "torchrun, or that of the campaign file", Category: measuring},
			&cli.StringFlag{Name: "emit", Usage: "write what starts the plans under `FRAMEWORK`, see pacer ls frameworks, and a file of rows for the results", DefaultText: "none: measure here", Category: others},
			&cli.IntFlag{Name: "points", Value: 4, Usage: "choose `N` plans for --emit", Category: others},
			&cli.StringFlag{Name: "rows", Usage: "`FILE` of rows: written by --emit, read without it", DefaultText: "none", Category: others},
			datadir.ServerFlag(others),
		},
		Before: command.NoArgs,
		Action: run,
	}
}

func run(c *cli.Context) error {
	if c.Path("model") == "" {
		return fail.Usagef("calibrate: --model is missing; pacer ls models lists the known ones")
	}
	if err := command.NotZero(c, "devices", "global-batch", "seq", "points"); err != nil {
		return err
	}
	for _, f := range []string{"alone", "budget", "label", "runner"} {
		if c.IsSet(f) && (c.IsSet("emit") || c.IsSet("rows")) {
			return fail.Usagef("calibrate: --%s conflicts with --emit and --rows, which do not measure here", f)
		}
	}
	if c.IsSet("points") && !c.IsSet("emit") {
		return fail.Usagef("calibrate: --points goes with --emit")
	}
	o := Options{Model: c.Path("model"), Only: c.String("only"), Likely: c.Bool("likely"), Alone: c.Bool("alone"), Accelerator: c.String("accelerator"), Devices: c.Int("devices"),
		GlobalBatch: c.Int("global-batch"), Seq: c.Int("seq"), Budget: c.Duration("budget"), Label: c.String("label"), Runner: c.String("runner"), Seed: command.Seed(c),
		Emit: c.String("emit"), Points: c.Int("points"), Rows: c.String("rows")}
	result, partial, err := Run(c.Context, o, datadir.Of(c), c.App.Reader, c.App.ErrWriter)
	if err != nil {
		return command.ForVerb(c, err)
	}
	if err := command.Print(c, result); err != nil {
		return err
	}
	if partial {
		return fail.Partialf("calibrate: rows of %s could not be used, see above", o.Rows)
	}
	return nil
}
