package main

import (
	"context"
	"io"

	"github.com/pacer-ml/pacer/cmd/internal/benchmark"
	"github.com/pacer-ml/pacer/cmd/internal/calibrate"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	_ "github.com/pacer-ml/pacer/cmd/internal/firstgc"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/cmd/internal/listing"
	"github.com/pacer-ml/pacer/cmd/internal/plan"
	"github.com/pacer-ml/pacer/cmd/internal/profile"
	"github.com/pacer-ml/pacer/cmd/internal/schedule"
	"github.com/pacer-ml/pacer/cmd/internal/serve"
	"github.com/pacer-ml/pacer/cmd/internal/simulate"
	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/urfave/cli/v2"
)

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, args, stdin, stdout, stderr, newApp, plan.Groups)
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "pacer",
		Usage: "predict the throughput of training jobs, plan their parallelism, compare schedulers",
		Description: `Measurements go into a store, performance models are fitted to them, and
plans and schedulers are judged with the models. A first answer needs no data:

   pacer plan --model llama3-8b --accelerator h100 -n 16 --global-batch 128

Measurements of your own machine:

   pacer profile run bench/campaigns/cpu-smoke.yaml

From measurements to a scheduling study:

   pacer import rubick DIR        DIR is a clone of the published data
   pacer fit --family rubick
   pacer simulate --workload FILE --cluster 8x8xA800 --policy fifo,rubick

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no answer, 4 done in part.`,
		Version: versionString(),
		Commands: []*cli.Command{
			demoCommand(), importer.Command(), exportCommand(), profile.Command(), calibrate.Command(), fitCommand(), plan.PredictCommand(),
			plan.Command(), plan.CurveCommand(), plan.FitCheckCommand(), plan.CheckCommand(), plan.RecommendCommand(), plan.WatchCommand(), simulate.Command(), simulate.SweepCommand(), simulate.LearnCommand(),
			simulate.ReportCommand(), serve.Command(), serve.TokenCommand(), serve.PageCommand(), schedule.Command(), schedule.RunCommand(), schedule.AdviseCommand(), listing.Command(), trust.Command(), benchmark.Command(), versionCommand(),
		},
	}
}
