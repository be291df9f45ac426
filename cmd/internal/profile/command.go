package profile

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// Command is pacer profile.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "profile",
		Usage: "measure step times on this machine, the points with the most information first",
		Description: `A campaign is a YAML file: models, the ways to split them, and a budget. Its
points are measured one by one, each stored before the next begins, so that
nothing measured is lost when the machine goes down:

   pacer profile plan bench/campaigns/cpu-smoke.yaml   points and their cost
   pacer profile run bench/campaigns/cpu-smoke.yaml    measure, or continue
   pacer profile status cpu-smoke                      progress
   pacer fit --source campaign/cpu-smoke               fit its measurements

docs/guides/campaigns.md describes the file. Measuring needs python3 with PyTorch;
PACER_PYTHON names another interpreter.`,
		Subcommands: []*cli.Command{
			runCommand(), planCommand(), scoreCommand(), explainCommand(), statusCommand(), devicesCommand(), pointCommand(), machineCommand(),
		},
	}
}

// machineFlags select where and how a campaign is measured, and which run of it is meant.
func machineFlags() []cli.Flag {
	return []cli.Flag{
		devicesListFlag(),
		&cli.StringFlag{Name: "assume", Usage: "plan for a machine with `NxACCELERATOR`, such as 8xH200, instead of this one", Category: command.CategoryHardware},
		&cli.IntFlag{Name: "nodes", Value: 1, Usage: "let a point use up to `N` nodes, with --on or --assume", Category: command.CategoryHardware},
		&cli.Float64Flag{Name: "node-network-gbps", Usage: "network of a node with --nodes, `G` Gbit/s in one direction, all NICs", DefaultText: "as the node says", Category: command.CategoryHardware},
		&cli.StringFlag{Name: "label", Aliases: []string{"l"}, Value: "1", Usage: "`NAME` of the run: a run with stored points is continued", Category: categoryCampaign},
		&cli.BoolFlag{Name: "reuse", Usage: "learn from stored measurements of the same models and accelerator too, of any source", Category: categoryCampaign},
		&cli.StringFlag{Name: "for", Usage: "choose the points that tell most about the plans in `FILE`, the output of pacer plan --output json; they may need other devices than this machine's", Category: categoryCampaign, DefaultText: "all points of the campaign"},
		&cli.StringFlag{Name: "runner", Usage: "measure by `NAME` instead of the file's: torchrun, synthetic, or replay:SOURCE of stored rows", Category: categoryCampaign},
	}
}

// categoryCampaign are the flags about a run of a campaign.
const categoryCampaign = "Campaign"

func devicesListFlag() cli.Flag {
	return &cli.StringFlag{Name: "devices", Usage: "use only these devices, by index: `0,1`, see pacer profile devices; cpu for the CPU", DefaultText: "all", Category: command.CategoryHardware}
}

// openDry prepares the campaign file that is the command's only argument, to measure nothing.
func openDry(c *cli.Context) (*campaign.Session, error) {
	o := campaignOptions(c)
	o.Dry, o.Measured = true, datadir.Of(c).MeasuredText
	return openWith(c, o, datadir.Of(c).Rows)
}

// openCampaign prepares that file for a run, here or on the cluster of --on.
func openCampaign(c *cli.Context, rows campaign.RowSource, measured func(context.Context, string) (string, error)) (*campaign.Session, error) {
	o := campaignOptions(c)
	o.Measured = measured
	var err error
	if o.Cluster, err = clusterOf(c); err != nil {
		return nil, command.ForVerb(c, err)
	}
	if o.Cluster == nil {
		for _, name := range []string{"parallel", "program"} {
			if c.IsSet(name) {
				return nil, fail.Usagef("run: --%s needs --on", name)
			}
		}
		return openWith(c, o, rows)
	}
	dir, err := datadir.Of(c).Path()
	if err != nil {
		return nil, err
	}
	o.Program, o.JobDir, o.GPUs, o.Parallel = c.String("program"), filepath.Join(dir, "jobs"), c.Int("gpus"), c.Int("parallel")
	if err := errors.Join(command.InRange(c, "parallel", o.Parallel, 1024), command.NotNegative(c, "gpus")); err != nil {
		return nil, err
	}
	return openWith(c, o, rows)
}

func openWith(c *cli.Context, o campaign.Options, rows campaign.RowSource) (*campaign.Session, error) {
	if err := command.InRange(c, "nodes", o.Nodes, 4096); err != nil {
		return nil, err
	}
	if v := o.NetworkGbps; c.IsSet("node-network-gbps") && !(v > 0 && v <= 1e6) {
		return nil, fail.Usagef("%s: --node-network-gbps %g is not in (0, 1e6]", c.Command.Name, v)
	}
	path, err := command.OnePath(c, "CAMPAIGN.yaml")
	if err != nil {
		return nil, err
	}
	s, err := campaign.Open(c.Context, path, o, rows)
	if err != nil {
		return nil, command.ForVerb(c, err)
	}
	return s, nil
}

func campaignOptions(c *cli.Context) campaign.Options {
	return campaign.Options{Label: c.String("label"), Reuse: c.Bool("reuse"), Devices: c.String("devices"), Runner: c.String("runner"),
		Assume: c.String("assume"), Nodes: c.Int("nodes"), NetworkGbps: c.Float64("node-network-gbps"), For: c.String("for"), Seed: command.Seed(c)}
}
