package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// engine is a cluster of --on.
type engine struct {
	live.Cluster
	// lead calls run as the only process that writes to the cluster. With --once it does not
	// wait for another to end.
	lead func(c *cli.Context, run func(context.Context) error) error
	// settle waits until what a single tick began needs pacer no more; nil = at once.
	settle func(ctx context.Context) error
}

// engines are the clusters of --on.
var engines = map[string]func(c *cli.Context) (engine, error){"slurm": slurmEngine, "kubernetes": kubernetesEngine}

// Command is pacer schedule.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "schedule",
		Usage: "drive a real cluster by a scheduling policy",
		Description: `Jobs that ask for it are started, stopped and resized as the policy decides. What
is decided is recorded beside each job, so that pacer may end at any time: jobs run
on, and the next pacer goes on from there. Jobs of others are never touched.
docs/guides/slurm.md and kubernetes.md go from a dry run to control.

   pacer schedule --on slurm --policy rubick --gres a100=a100-80gb \
       --dry-run --once
   pacer schedule --on slurm --policy rubick --gres a100=a100-80gb
   pacer schedule --on kubernetes --policy rubick

With --on kueue, Kueue decides which jobs run, on which accelerators and with how many
pods, and pacer gives each its plan by an AdmissionCheck.

   pacer schedule --on kueue

The script of a job starts its command by pacer run, which gives it the plan.`,
		Flags: slices.Concat(kubernetesFlags(), []cli.Flag{
			&cli.StringFlag{Name: "on", Usage: "drive `CLUSTER`: slurm or kubernetes; kueue: choose the plans of jobs that Kueue admits", Category: "Cluster"},
			gresFlag(),
			&cli.StringFlag{Name: "partition", Usage: "schedule the nodes and jobs of `NAME,...`", DefaultText: "all", Category: "Cluster"},
			&cli.StringFlag{Name: "lock", Usage: "let one pacer at a time write, by a lock on `FILE` on a file system that all share", DefaultText: "schedule.lock in the data directory", Category: "Cluster"},
			&cli.StringFlag{Name: "policy", Aliases: []string{"p"}, Value: "fifo", Usage: "decide by `NAME[:key[=value]...]`, see pacer ls policies", Category: "Scheduler"},
			&cli.StringFlag{Name: "placement", Usage: "place jobs by `NAME`, see pacer ls placements", DefaultText: "packed", Category: "Scheduler"},
			&cli.DurationFlag{Name: "start-cost", Value: time.Minute, Usage: "expect training to begin `TIME` after a start", Category: "Scheduler"},
			&cli.IntFlag{Name: "max-restarts-per-hour", Usage: "stop at most `N` running jobs within an hour, 0 = no limit; further restarts wait", Category: "Scheduler"},
			&cli.StringFlag{Name: "metrics", Usage: "serve metrics for Prometheus at `HOST:PORT`, path /metrics, such as 127.0.0.1:9470", DefaultText: "none", Category: "Run"},
			&cli.StringFlag{Name: "record", Usage: "append what happens to `FILE`, for pacer simulate --replay", DefaultText: "nothing", Category: "Run"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would be decided, and write nothing", Category: "Run"},
			&cli.BoolFlag{Name: "advise", Usage: "a dry run that annotates each job with what would be decided, and writes nothing else; Kubernetes only", Category: "Run"},
			&cli.BoolFlag{Name: "once", Usage: "observe, decide and write once, then end", Category: "Run"},
		}, estimateFlags("Scheduler")),
		Before: command.NoArgs,
		Action: runSchedule,
	}
}

func runSchedule(c *cli.Context) error {
	if c.String("on") == "kueue" {
		return answerKueue(c)
	}
	makeEngine, ok := engines[c.String("on")]
	if !ok {
		return fail.Usagef("schedule: --on %q is no cluster, want slurm, kubernetes or kueue", c.String("on"))
	}
	if c.Bool("advise") && c.String("on") != "kubernetes" {
		return fail.Usagef("schedule: --advise needs --on kubernetes")
	}
	for _, flag := range []string{"max-restarts-per-hour", "start-cost"} {
		if err := command.NotNegative(c, flag); err != nil {
			return err
		}
	}
	dry := c.Bool("dry-run") || c.Bool("advise")
	if c.IsSet("record") && (dry || c.String("record") == "") {
		return fail.Usagef("schedule: --record wants a FILE, and neither --dry-run nor --advise: nothing happens then")
	}
	oracle, err := newEstimates(c)
	if err != nil {
		return err
	}
	makePolicy, err := policyMaker(c, oracle)
	if err != nil {
		return err
	}
	estimate := func(cluster spec.Cluster) sim.Truth { return sim.Predicted{Predictor: oracle, Cluster: cluster} }
	engine, err := makeEngine(c)
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	metrics := newMetrics()
	onEvent, onTick := eventPrinter(c.App.Writer, command.Global(c, "output") == "json"), metrics.onTick
	if a, ok := engine.Cluster.(advisor); ok && c.Bool("advise") && !c.Bool("dry-run") {
		onEvent, onTick = advising(c, a, onEvent, onTick)
	}
	record := recorder{cli: c}
	controller, err := live.New(live.Options{
		OnTick: onTick, OnState: record.observe,
		Cluster: engine.Cluster, Policy: makePolicy, Estimate: estimate, Refitted: oracle.refitted, Planner: oracle.planner, StartCost: c.Duration("start-cost"),
		MaxRestarts: c.Int("max-restarts-per-hour"), DryRun: dry, OnEvent: onEvent,
	})
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	if address := c.String("metrics"); address != "" {
		if err := metrics.serve(c.Context, address, c.App.ErrWriter); err != nil {
			return err
		}
	}
	run := controller.Run
	if !c.Bool("once") {
		go oracle.watch(c.Context, refitCheck)
	}
	if c.Bool("once") {
		run = func(ctx context.Context) error { return scheduleOnce(ctx, controller, engine) }
	}
	if dry {
		return run(c.Context)
	}
	return engine.lead(c, record.during(run))
}

// advisor is a cluster that shows the decisions of a dry run to the owners of jobs.
type advisor interface {
	Advise(e live.Event)
	WriteAdvice(ctx context.Context) error
}

// advising adds advice on jobs to the events and ticks of a dry run.
func advising(c *cli.Context, a advisor, onEvent func(live.Event), onTick func(live.Report)) (func(live.Event), func(live.Report)) {
	event := func(e live.Event) {
		onEvent(e)
		a.Advise(e)
	}
	tick := func(r live.Report) {
		onTick(r)
		if err := a.WriteAdvice(c.Context); err != nil {
			fmt.Fprintln(c.App.ErrWriter, "warning:", err)
		}
	}
	return event, tick
}

// scheduleOnce observes, decides and writes once.
func scheduleOnce(ctx context.Context, controller *live.Controller, e engine) error {
	if _, err := controller.Tick(ctx); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	switch s := controller.Stats(); {
	case s.Failed+s.Refused > 0:
		return errors.New("schedule: the policy made no valid decision, see above")
	case s.FailedWrites > 0:
		return fmt.Errorf("schedule: %d of %d writes failed, see above", s.FailedWrites, s.Writes)
	case e.settle != nil && s.Writes > 0:
		return e.settle(ctx)
	}
	return nil
}

// policyMaker reads --policy and --placement.
func policyMaker(c *cli.Context, oracle scheduler.Oracle) (func(spec.Cluster) (scheduler.Policy, error), error) {
	specs, err := builtin.Policies.Parse(c.String("policy"))
	if err == nil && len(specs) != 1 {
		err = fmt.Errorf("%d policies, want one", len(specs))
	}
	if err != nil {
		return nil, fail.Usagef("schedule: --policy: %w", err)
	}
	placer, err := place.Lookup(c.String("placement"))
	if err != nil {
		return nil, fail.Usagef("schedule: --placement: %w", err)
	}
	maker := func(spec.Cluster) (scheduler.Policy, error) {
		return builtin.Policies.New(specs[0], policy.Deps{Oracle: place.EvenOracle{Oracle: oracle}, Placer: place.Even(placer), Seed: command.Seed(c)})
	}
	if _, err := maker(spec.Cluster{}); err != nil {
		return nil, fail.Usagef("schedule: --policy: %w", err)
	}
	return maker, nil
}

func slurmEngine(c *cli.Context) (engine, error) {
	options, err := slurmOptions(c)
	if err != nil {
		return engine{}, err
	}
	options.Partitions = command.List(c, "partition")
	cluster, err := slurm.New(c.Context, options)
	return engine{Cluster: cluster, lead: leadByLock}, err
}

// slurmOptions reads --gres.
func slurmOptions(c *cli.Context) (slurm.Options, error) {
	types, err := command.Pairs(c, "gres")
	return slurm.Options{
		Model: catalog.Model,
		NodeType: func(gres string, devices int) (spec.NodeGroup, error) {
			name, ok := types[gres]
			if !ok {
				name = gres
			}
			if name == "" {
				return spec.NodeGroup{}, errors.New("GPUs without a type: set one in gres.conf")
			}
			group, err := nodeType(name, devices)
			if err != nil {
				return group, fmt.Errorf("GRES type %q: %w", gres, err)
			}
			return group, nil
		},
	}, err
}

func gresFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "gres", Usage: "nodes with GRES `TYPE=ACCELERATOR` have that accelerator, see pacer ls accelerators (repeatable); other types are names of accelerators themselves", Category: "Cluster"}
}

// estimateFlags are those of newEstimates.
func estimateFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "family", Value: query.Auto, Usage: "predict by models of `FAMILY`, see pacer ls families; auto: the most accurate of each model and accelerator", Category: category},
		&cli.StringFlag{Name: "server", Usage: "predict by the pacer serve at `URL`; while it does not answer, in this process. $" + command.TokenVariable + " is its token", DefaultText: "in this process", Category: category},
	}
}

// nodeType returns a node with a number of devices of an accelerator of the catalog.
func nodeType(accelerator string, devices int) (spec.NodeGroup, error) {
	cluster, err := catalog.Cluster(fmt.Sprintf("1x%dx%s", devices, accelerator))
	if err != nil {
		return spec.NodeGroup{}, err
	}
	return cluster.Groups[0], nil
}

// leadByLock calls run with the lock of --lock.
func leadByLock(c *cli.Context, run func(context.Context) error) error {
	unlock, err := scheduleLock(c)
	if err != nil || c.Context.Err() != nil {
		return err
	}
	defer unlock()
	return run(c.Context)
}

// scheduleLock waits for the lock that lets one pacer at a time write.
func scheduleLock(c *cli.Context) (unlock func(), err error) {
	path := c.String("lock")
	if path == "" {
		dir, err := datadir.Of(c).Path()
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("schedule: %w", err)
		}
		path = filepath.Join(dir, "schedule.lock")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("schedule: --lock: %w", err)
	}
	for said := false; ; said = true {
		held, err := lockFile(f)
		if err == nil && !held {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("schedule: --lock %s: %w", path, err), f.Close())
		}
		if c.Bool("once") {
			return nil, errors.Join(fmt.Errorf("schedule: another pacer holds the lock on %s", path), f.Close())
		}
		if !said {
			fmt.Fprintf(c.App.ErrWriter, "another pacer holds the lock on %s; waiting for it\n", path)
		}
		select {
		case <-c.Context.Done():
			return func() {}, f.Close()
		case <-time.After(time.Second):
		}
	}
}

// eventPrinter writes a line per event, or a JSON object.
func eventPrinter(w io.Writer, asJSON bool) func(live.Event) {
	return func(e live.Event) {
		if asJSON {
			line, err := json.Marshal(eventRow{e.At.UTC(), e.Object, string(e.Kind), e.Message, e.Warning, e.DryRun})
			if err == nil {
				fmt.Fprintf(w, "%s\n", line)
			}
			return
		}
		kind := string(e.Kind)
		if e.DryRun && e.Kind == live.Decided {
			kind = "WouldDecide"
		}
		fmt.Fprintf(w, "%s  %-12s %-12s %s\n", e.At.Format("15:04:05"), e.Object, kind, strings.ReplaceAll(e.Message, "\n", " "))
	}
}

// eventRow is an event in JSON.
type eventRow struct {
	At      time.Time `json:"at"`
	Object  string    `json:"object"`
	Kind    string    `json:"kind"`
	Message string    `json:"message"`
	Warning bool      `json:"warning"`
	DryRun  bool      `json:"dry_run"`
}
