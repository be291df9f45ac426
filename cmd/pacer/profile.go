package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

func profileCommand() *cli.Command {
	return &cli.Command{
		Name:  "profile",
		Usage: "measure step times on this machine, the points that teach most first",
		Description: `A campaign is a YAML file: models, the ways to split them, and a budget. Its
points are measured one by one, each stored before the next begins, so that
nothing measured is lost when the machine goes down:

   pacer profile plan bench/campaigns/cpu-smoke.yaml   what, at what cost
   pacer profile run bench/campaigns/cpu-smoke.yaml    measure, or go on
   pacer profile status cpu-smoke                      how far it is
   pacer fit --source campaign/cpu-smoke               what it taught

docs/guides/campaigns.md describes the file. Measuring needs python3 with PyTorch;
PACER_PYTHON names another interpreter.`,
		Subcommands: []*cli.Command{
			profileRunCommand(), profilePlanCommand(), profileExplainCommand(), profileStatusCommand(), profileDevicesCommand(),
		},
	}
}

// maxCampaignFile bounds a campaign file, in bytes: beyond it is another file.
const maxCampaignFile = 1 << 20

// campaignArg reads the campaign file a command is given as its only argument.
func campaignArg(c *cli.Context) (profiler.Campaign, error) {
	path, err := command.OnePath(c, "CAMPAIGN.yaml")
	if err != nil {
		return profiler.Campaign{}, err
	}
	if err := profiler.CheckLabel(c.String("label")); err != nil {
		return profiler.Campaign{}, fail.Usagef("%s: --label: %w", c.Command.Name, err)
	}
	camp, err := readCampaign(path)
	if err != nil {
		return camp, err
	}
	return camp, overrideRunner(c, &camp)
}

func readCampaign(path string) (profiler.Campaign, error) {
	f, err := os.Open(path)
	if err != nil {
		return profiler.Campaign{}, fmt.Errorf("profile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCampaignFile+1))
	switch {
	case err != nil:
		return profiler.Campaign{}, fmt.Errorf("profile: %w", err)
	case len(text) > maxCampaignFile:
		return profiler.Campaign{}, fail.Usagef("profile: %s is larger than %d KiB, want a campaign file", path, maxCampaignFile>>10)
	}
	camp, err := profiler.ReadCampaign(path, text, catalog.Model)
	if err != nil {
		return camp, fail.WithCode(fail.Usage, err)
	}
	if want := camp.Space.Accelerator; want != "" && want != profiler.AnyGPU {
		camp.Space.Accelerator = datadir.CatalogNames([]string{want})[0]
	}
	return camp, nil
}

// runFlags say which run of a campaign is meant, and what it may know.
func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "label", Aliases: []string{"l"}, Value: "1", Usage: "`NAME` of the run: one with stored points goes on where it was"},
		&cli.BoolFlag{Name: "reuse", Usage: "learn from stored measurements of the same models and accelerator too, of any source"},
	}
}

// profileOptions are the options of a run of camp at s, but for the sink.
func profileOptions(c *cli.Context, camp profiler.Campaign, s measurementSetup, rows []spec.Measurement) (profiler.Options, error) {
	fam, err := campaignFamily(camp)
	if err != nil {
		return profiler.Options{}, err
	}
	return profiler.Options{
		Machine: s.machine, Runner: s.runner, Family: fam, Label: c.String("label"),
		Rows: rows, Reuse: c.Bool("reuse"), Seed: command.Seed(c),
	}, nil
}

// campaignFamily returns the performance model that guides camp.
func campaignFamily(camp profiler.Campaign) (perfmodel.Family, error) {
	name := camp.Family
	if name == "" {
		name = "rubick"
	}
	fam, err := family.Lookup(name)
	if err != nil {
		return fam, fail.Usagef("profile: campaign %s: %w", camp.Name, err)
	}
	return fam, nil
}

// campaignFilter chooses the stored rows a run of camp may use: its own, or
// with reuse all of its models.
func campaignFilter(c *cli.Context, camp profiler.Campaign) store.Filter {
	if !c.Bool("reuse") {
		return store.Filter{Sources: []string{camp.Source()}}
	}
	var f store.Filter // all models where the campaign names none
	for _, m := range camp.Models {
		f.Models = append(f.Models, m.Name)
	}
	return f
}

// setupError passes err on; one of set-up gets the exit code of a failure
// whatever it wraps.
func setupError(err error) error {
	if errors.Is(err, profiler.ErrSetup) {
		return fail.WithCode(fail.Failed, err)
	}
	return err
}

// campaignNamed returns the campaign an argument means, a file or a name; camp is
// nil for a name.
func campaignNamed(arg string) (name string, camp *profiler.Campaign, err error) {
	ext := filepath.Ext(arg)
	st, statErr := os.Stat(arg)
	if ext != ".yaml" && ext != ".yml" && (statErr != nil || st.IsDir()) {
		return strings.TrimPrefix(arg, sourcePrefix), nil, nil
	}
	read, err := readCampaign(arg)
	return read.Name, &read, err
}
