package simulate

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
)

// workloadFlags choose jobs and a cluster.
func workloadFlags() []cli.Flag {
	const category = "Workload and cluster"
	return []cli.Flag{
		&cli.StringFlag{Name: "workload", Aliases: []string{"w"}, Usage: "read jobs from `FILE[:FORMAT]`, or make them by synthetic:OPTIONS", Category: category},
		&cli.StringFlag{Name: "window", Usage: "take jobs number `A-B` in order of submission, from 0, or submitted at times such as 1d-8d; of a recording, times", DefaultText: "all", Category: category},
		&cli.Float64Flag{Name: "load-scale", Value: 1, Usage: "divide the times between submissions by `X`", Category: category},
		&cli.StringFlag{Name: "cluster", Usage: "simulate these machines: `SPEC` such as 8x8xA800, or a YAML file", Category: category},
	}
}

// truthFlags choose truth and belief.
func truthFlags() []cli.Flag {
	const category = "Speed of jobs"
	return []cli.Flag{
		&cli.StringFlag{Name: "truth", Usage: "run jobs at the speeds of `TRUTH`", DefaultText: "rubick:measured for rubick workloads, fitted:analytic for recordings, else duration", Category: category},
		&cli.StringFlag{Name: "belief", Usage: "tell policies the speeds of `BELIEF`", DefaultText: "fitted:rubick with a rubick: truth, else perfect", Category: category},
		&cli.StringFlag{Name: "host-speeds", Usage: "make speeds depend on CPUs and memory of hosts by `FILE.csv`, with a row for each model, gpus, cpus_per_gpu and mem_gb_per_gpu", DefaultText: "no effect", Category: category},
	}
}

// failureFlags choose the costs of starts and the failures of nodes.
func failureFlags() []cli.Flag {
	const category = "Costs and failures"
	return []cli.Flag{
		&cli.StringFlag{Name: "start-cost", Usage: "charge `SECONDS` or MODEL=SECONDS,... per start, resume or change", DefaultText: "that of --compat or of the recording, or 260 with a rubick: truth, else 0", Category: category},
		&cli.StringFlag{Name: "costs", Usage: "charge starts and checkpoints by model, in place of --start-cost: `FILE.csv`, or state[:restart=S][:gbytes=G] by the bytes of the state", Category: category},
		&cli.StringFlag{Name: "resize-cost", Usage: "charge `SECONDS` when a running job changes its devices and keeps some on one of its nodes", DefaultText: "as a start", Category: category},
		&cli.StringFlag{Name: "checkpoint-every", Usage: "write a checkpoint after each `SECONDS` of training; a failure loses the rest", DefaultText: "only when a job is stopped or moved", Category: category},
		&cli.StringFlag{Name: "failures", Usage: "let nodes fail: `UP/DOWN` mean times such as 30d/2h, TYPE=UP/DOWN,... by accelerator, or FILE.csv of outages", DefaultText: "none", Category: category},
		&cli.StringFlag{Name: "maintenance", Usage: "take nodes down at known times: `NODES@FROM/TO`,... such as 0-3@6h/8h, or FILE.csv of outages", DefaultText: "none", Category: category},
		&cli.StringFlag{Name: "spot", Usage: "take spot capacity back: `UP/DOWN[:notice=SECONDS]` like --failures, or FILE.csv; jobs are warned, by default 120 s before", DefaultText: "never", Category: category},
		&cli.StringFlag{Name: "node-sigma", Usage: "vary the speed of nodes by `SIGMA`, standard deviation of ln(speed)", DefaultText: "0", Category: category},
		&cli.StringFlag{Name: "stragglers", Usage: "slow nodes down at times: `EVERY/LAST/SPEED`, mean times and the speed left, such as 10d/1h/0.5", DefaultText: "none", Category: category},
	}
}

// experimentOptions reads the flags of c that are options of a simulation.
func experimentOptions(c *cli.Context) experiment.Options {
	var o experiment.Options
	setOptions(c, &o)
	return o
}

// setOptions sets the options of a simulation that c has flags of, its data and its seed.
func setOptions(c *cli.Context, o *experiment.Options) {
	for _, name := range experiment.Settings() {
		if c.IsSet(name) {
			_ = o.Set(name, fmt.Sprint(c.Value(name))) // the name is known
		}
	}
	d := datadir.Of(c)
	o.Seed, o.Data = command.Seed(c), experiment.Data{Rows: d.Rows, Fitted: d.Fitted}
	o.Warn = func(w experiment.Warning) { fmt.Fprintf(c.App.ErrWriter, "%s: %s\n", w.Kind, w.Text) }
}
