package benchmark

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
)

// Categories of flags.
const category, categoryOutput = "Benchmark", "Output"

// Command is pacer bench. dataDir is the directory of --data.
func Command(dataDir func(*cli.Context) *datadir.Dir) *cli.Command {
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure pacer itself on the published data sets",
		Subcommands: []*cli.Command{accuracyCommand(), plannerCommand(), schedulingCommand(dataDir)},
	}
}
