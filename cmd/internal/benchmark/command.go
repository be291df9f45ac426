package benchmark

import (
	"github.com/urfave/cli/v2"
)

// category is that of flags of every benchmark.
const category = "Benchmark"

// Command is pacer bench.
func Command() *cli.Command {
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure pacer itself on the published data sets",
		Subcommands: []*cli.Command{accuracyCommand(), plannerCommand(), schedulingCommand()},
	}
}
