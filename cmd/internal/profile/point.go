package profile

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
)

// pointCommand is what the jobs of profile run --on run.
func pointCommand() *cli.Command {
	return &cli.Command{
		Name:      "point",
		Usage:     "measure the point of a request file that profile run wrote for a job of a cluster",
		ArgsUsage: "FILE",
		Hidden:    true,
		Action: func(c *cli.Context) error {
			path, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			return campaign.SetupError(campaign.RunJob(c.Context, path))
		},
	}
}
