package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/urfave/cli/v2"
)

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, args, stdin, stdout, stderr, newApp, flagGroups)
}

func newApp() *cli.App {
	return &cli.App{
		Name:  "pacer",
		Usage: "predict the throughput of training jobs, plan their parallelism, compare schedulers",
		Description: `Measurements go into a store, performance models are fitted to them, and plans
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
			demoCommand(), importCommand(), exportCommand(), profileCommand(), fitCommand(), predictCommand(),
			planCommand(), curveCommand(), fitCheckCommand(), simulateCommand(), sweepCommand(), learnCommand(),
			reportCommand(), serveCommand(), lsCommand(), benchCommand(), versionCommand(),
		},
	}
}

// dataDir returns the data directory and creates nothing.
func dataDir(c *cli.Context) (string, error) {
	if d := command.Global(c, "data"); d != "" {
		return d, nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "pacer"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no data directory: set --data DIR: %w", err)
	}
	return filepath.Join(home, ".local", "share", "pacer"), nil
}

// noteNoData says once that the directory of --data does not exist, where a
// command reads what it finds there.
func noteNoData(c *cli.Context) {
	const key = "no data noted"
	dir := command.Global(c, "data")
	if dir == "" || c.App.Metadata[key] != nil {
		return
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		c.App.Metadata[key] = true
		fmt.Fprintf(c.App.ErrWriter, "warning: --data %s does not exist, so nothing is stored there\n", dir)
	}
}
