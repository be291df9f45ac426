package benchmark

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/bench/scheduling"
	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
	studies "github.com/pacer-ml/pacer/scheduler/study"
)

func schedulingCommand() *cli.Command {
	return &cli.Command{
		Name:        "scheduling",
		Usage:       "compare scheduling policies on generated and recorded workloads",
		Description: schedulingHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "cells", Usage: "run the cells of `FILE`, or of a built-in set: " + strings.Join(scheduling.BuiltinNames(), ", "), DefaultText: "training", Category: category},
			&cli.StringSliceFlag{Name: "only", Usage: "run only the cell `NAME` and the cell it is a variant of (repeatable)", DefaultText: "all", Category: category},
			&cli.StringFlag{Name: "seeds", Usage: "draw workloads by the seeds `A-B`, or held-out: " + scheduling.HeldOutSeeds, DefaultText: "those of the file, else " + scheduling.TrainingSeeds, Category: category},
			&cli.StringFlag{Name: "policies", Usage: "compare `NAME[:key[=value]...][,...]`", DefaultText: "those of the file, else " + scheduling.DefaultPolicies, Category: category},
			&cli.StringFlag{Name: "of", Usage: "show the cells of policy `NAME`", DefaultText: "the first of the policies", Category: category},
			&cli.StringSliceFlag{Name: "workload", Usage: "run jobs of `FILE[:FORMAT]` on --cluster in place of cells (repeatable)", Category: category},
			&cli.StringFlag{Name: "cluster", Usage: "run the jobs of --workload on `SPEC` such as 8x8xA800, or a YAML file", Category: category},
			&cli.StringFlag{Name: "truth", Usage: "run the jobs of --workload at the speeds of `TRUTH`, as pacer simulate", Category: category},
			&cli.StringFlag{Name: "shared", Usage: "read recorded workloads of cells below `DIR`", DefaultText: "the working directory", Category: category, EnvVars: []string{"PACER_SHARED"}},
			&cli.StringFlag{Name: "out", Usage: "keep results in `DIR`", DefaultText: "sweeps/scheduling in --data", Category: command.CategoryOutput},
			&cli.StringFlag{Name: "runs-out", Usage: "write one CSV row per run to `FILE`", Category: command.CategoryOutput},
		},
		Before: command.NoArgs,
		Action: func(c *cli.Context) error { return runScheduling(c, datadir.Of(c)) },
	}
}

const schedulingHelp = `Runs every policy on workloads drawn from cells, as many at a time as there are
cores (GOMAXPROCS), and keeps every result: the same command resumes. It prints
for each cell the ratio of the best other policy's figure to that of one policy
(above 1: the policy is better), as a geometric mean over workloads that are
paired by seed, with its 95 % interval of Student's t; and the mean over cells
for every policy. The best other is the least of each workload among all other
policies but those that know true remaining times, ` + "`srtf` and `optimus-oracle`" + `.
The truth is Rubick's measured table, which is no part of pacer:

   pacer import rubick DIR
   pacer fit --rows 8 --family rubick
   pacer bench scheduling --seeds 1-5 --policies pacer,rubick,sia

Choose options on the training seeds, 1-20, and report the held-out ones:

   pacer bench scheduling --seeds held-out

A file of cells in YAML; every key is optional but name, and defaults apply to
all cells:

   seeds: 1-20
   policies: [pacer, rubick, las]
   defaults: {nodes: 8, jobs: 200, guaranteed: 0.1, start_cost: 260}
   cells:
     - {name: usual, load: 0.9}
     - {name: bursts, load: 1.2, arrivals: bursty, durations: pareto}
     - {name: known, variant_of: bursts, belief: perfect}
     - {name: slow, variant_of: bursts, time_scale: 10}
     - {name: mine, workload: "jobs.csv:philly", window: 0-300, cluster: 8x8}

Keys of drawn jobs, as the options of synthetic workloads: models, jobs, load
(device-seconds asked for per second and device), arrivals (poisson, bursty,
diurnal, once), sizes (mixed, small, large, 1x0.7+8x0.3), durations (log-normal,
pareto, uniform) by median_s, sigma, alpha and max_s, or resample (FILE of jobs
with run times), guaranteed (share of the jobs). nodes of 8 A800, or cluster.
start_cost in seconds. steps: unknown hides remaining steps from policies with
an option for it, such as pacer. belief: perfect, fitted:FAMILY, noisy:SIGMA. Other keys are
flags of pacer simulate. A variant has the jobs of its cell; its figures are
shown as multiples of that cell's, over its time_scale.`

func runScheduling(c *cli.Context, d *datadir.Dir) (err error) {
	b, of, err := schedulingBench(c, d)
	if err != nil {
		return err
	}
	files, err := command.OpenFiles(c, "runs-out")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Discard()) }()
	began, kept := time.Now(), 0
	var log *console.Bar
	b.Progress = func(p scheduling.Progress) {
		if log == nil {
			log = console.NewBar(c.App.ErrWriter, "bench scheduling", p.Total)
		}
		if log.Set(p.Done); p.Kept {
			kept++
		} else if !log.Drawn() {
			fmt.Fprintf(c.App.ErrWriter, "bench scheduling: %d of %d runs: %s on %s, seed %d\n", p.Done, p.Total, p.Policy, p.Cell, p.Seed)
		}
	}
	r, err := b.Run(c.Context)
	if log != nil {
		log.Finish()
	}
	if r == nil || err != nil && (c.Context.Err() == nil || len(r.Runs) == 0) {
		return fmt.Errorf("bench scheduling: %w", err)
	}
	fmt.Fprintf(c.App.ErrWriter, "bench scheduling: %d runs, %d of them from before, in %.1f s\n", len(r.Runs), kept, time.Since(began).Seconds())
	for _, s := range r.Skipped {
		fmt.Fprintf(c.App.ErrWriter, "skipped: %s\n", s)
	}
	if f := files["runs-out"]; f != nil {
		if err := f.Write(func(w io.Writer) error { return writeSchedulingRuns(w, r) }); err != nil {
			return err
		}
	}
	if e := command.Print(c, schedulingResult(r, of)); e != nil {
		return e
	}
	if err != nil {
		return fail.WithCode(fail.Partial, fmt.Errorf("bench scheduling: the same command goes on: %w", err))
	}
	if len(r.Skipped) > 0 && c.IsSet("workload") {
		return fail.Partialf("bench scheduling: %d of %d workloads are not there, see above", len(r.Skipped), len(b.Cells))
	}
	return nil
}

// schedulingBench reads the flags, and which policy's cells to show.
func schedulingBench(c *cli.Context, d *datadir.Dir) (*scheduling.Bench, string, error) {
	set, err := schedulingCells(c)
	if err != nil {
		return nil, "", err
	}
	b := &scheduling.Bench{Cells: set.Cells, Policies: set.Policies, Seeds: set.Seeds, Shared: c.String("shared"), Workers: runtime.GOMAXPROCS(0)}
	if p := c.String("policies"); p != "" || b.Policies == nil {
		if b.Policies, err = builtin.Policies.Parse(cmp.Or(p, scheduling.DefaultPolicies)); err != nil {
			return nil, "", fail.Usagef("bench scheduling: --policies: %w", err)
		}
	}
	seeds := c.String("seeds")
	switch {
	case seeds == "held-out":
		seeds = scheduling.HeldOutSeeds
	case seeds == "" && b.Seeds == nil:
		seeds = scheduling.TrainingSeeds
	}
	if seeds != "" {
		if b.Seeds, err = scheduling.ParseSeeds(seeds); err != nil {
			return nil, "", fail.Usagef("bench scheduling: --seeds: %w", err)
		}
	}
	var names []string
	for _, p := range b.Policies {
		names = append(names, p.String())
	}
	of := cmp.Or(c.String("of"), names[0])
	if !slices.Contains(names, of) {
		return nil, "", fail.Usagef("bench scheduling: --of %q is none of the policies: %s", of, strings.Join(names, ", "))
	}
	b.Data = experiment.Data{Rows: d.Rows, Fitted: d.Fitted}
	b.Warn = func(w experiment.Warning) { fmt.Fprintf(c.App.ErrWriter, "%s: %s\n", w.Kind, w.Text) }
	out := c.String("out")
	if out == "" {
		data, err := d.Path()
		if err != nil {
			return nil, "", err
		}
		out = filepath.Join(data, "sweeps", "scheduling")
	}
	b.Dir, err = studies.OpenDir(out)
	return b, of, err
}

// maxCellsFile bounds files of cells, in bytes.
const maxCellsFile = 1 << 20

// schedulingCells returns the cells of --cells, or one for each --workload.
func schedulingCells(c *cli.Context) (set scheduling.Set, err error) {
	if files := c.StringSlice("workload"); len(files) > 0 {
		if c.IsSet("cells") || c.IsSet("only") {
			return set, fail.Usagef("bench scheduling: --workload and --cells both say what to run: leave one out")
		}
		return workloadCells(c, files)
	}
	for _, flag := range []string{"cluster", "truth"} {
		if c.IsSet(flag) {
			return set, fail.Usagef("bench scheduling: --%s is of --workload; cells have it in their file", flag)
		}
	}
	name := c.String("cells")
	if name == "" {
		name = "training"
	}
	set, ok := scheduling.Builtin(name)
	if !ok {
		text, err := query.ReadFile("cells", name, maxCellsFile)
		if errors.Is(err, os.ErrNotExist) {
			return set, fail.Usagef("bench scheduling: --cells %q is neither a file nor a built-in set: %s", name, strings.Join(scheduling.BuiltinNames(), ", "))
		}
		if err != nil {
			return set, err
		}
		if set, err = scheduling.Read(name, text); err != nil {
			return set, fail.Usagef("bench %w", err)
		}
	}
	if only := c.StringSlice("only"); len(only) > 0 {
		set.Cells, err = scheduling.Only(set.Cells, only)
		if err != nil {
			return set, fail.Usagef("bench scheduling: --only: %w", err)
		}
	}
	return set, nil
}

// workloadCells returns a cell for each file.
func workloadCells(c *cli.Context, files []string) (set scheduling.Set, err error) {
	if c.String("cluster") == "" {
		return set, fail.Usagef("bench scheduling: --workload needs --cluster, such as 8x8xA800")
	}
	for _, file := range files {
		if set.Cells, err = scheduling.AddWorkload(set.Cells, file, c.String("cluster"), c.String("truth")); err != nil {
			return set, err
		}
	}
	return set, nil
}

// schedulingReport is the JSON of pacer bench scheduling.
type schedulingReport struct {
	Confidence float64            `json:"confidence"`
	Intervals  string             `json:"intervals"`
	Seeds      []uint64           `json:"seeds"`
	Policies   []scheduling.Total `json:"policies"`
	Cells      []scheduling.Row   `json:"cells"`
	Skipped    []string           `json:"skipped,omitempty"`
}

const schedulingIntervals = "Student's t over the seeds, of logarithms for ratios, which are paired by seed; over the cells where seeds differ between cells"

func schedulingResult(r *scheduling.Result, of string) console.Result {
	rows, totals := r.Rows(), r.Totals()
	csv, err := console.CSV(rows)
	return console.Result{
		JSON: schedulingReport{scheduling.Confidence, schedulingIntervals, r.Seeds, totals, rows, r.Skipped},
		CSV:  csv,
		Table: func(w io.Writer) error {
			return errors.Join(err, schedulingText(w, rows, totals, of))
		},
	}
}

func schedulingText(w io.Writer, rows []scheduling.Row, totals []scheduling.Total, of string) error {
	for _, t := range []struct {
		title string
		table report.Table
	}{
		{fmt.Sprintf("Best other policy over %s, by cell: above 1, %s is better", of, of), scheduling.CellTable(rows, of)},
		{"Best other policy over each policy, mean of the cells", scheduling.PolicyTable(totals)},
		{fmt.Sprintf("%s on variants, over the cells they vary", of), scheduling.VariantTable(rows, of)},
	} {
		if len(t.table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s:\n\n", t.title)
		t.table.Width = max(console.Width(w), 160)
		if err := t.table.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, f := range scheduling.Failures(rows) {
		fmt.Fprintf(w, "no result: %s\n", f)
	}
	_, err := fmt.Fprintf(w, "geometric means (95 %% interval): %s; won: workloads with the least average JCT of all policies\n", schedulingIntervals)
	return err
}

// schedulingRun is a row of --runs-out.
type schedulingRun struct {
	Cell  string `json:"cell"`
	Seed  uint64 `json:"seed"`
	Error string `json:"error"`
	report.Summary
}

func writeSchedulingRuns(w io.Writer, r *scheduling.Result) error {
	rows := make([]schedulingRun, len(r.Runs))
	for i, run := range r.Runs {
		rows[i] = schedulingRun{r.Cells[run.Cell].Name, run.Seed, run.Err, run.Summary}
		rows[i].Policy = run.Policy
	}
	text, err := console.CSV(rows)
	if err != nil {
		return err
	}
	return csv.NewWriter(w).WriteAll(text)
}
