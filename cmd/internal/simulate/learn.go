package simulate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/scheduler/learn"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// LearnCommand is pacer learn.
func LearnCommand() *cli.Command {
	return &cli.Command{
		Name:  "learn",
		Usage: "train scheduling policies that learn",
		Description: `Policies that learn are trained in the simulator, on workloads like those they
will schedule, and are then used like any other policy.`,
		Subcommands: []*cli.Command{learnDL2Command()},
	}
}

func learnDL2Command() *cli.Command {
	return &cli.Command{
		Name:        "dl2",
		Usage:       "train policy dl2: by imitating a teacher, then by reinforcement learning",
		Description: learnDL2Help + trainingTable(),
		Flags: slices.Concat(workloadFlags(), truthFlags(), []cli.Flag{
			&cli.StringFlag{Name: "placement", Usage: "place jobs by `NAME`, see pacer ls placements", DefaultText: "packed", Category: "Scheduler"},
			&cli.StringFlag{Name: "round", Usage: "let policies decide every `SECONDS`", DefaultText: "whenever something happens", Category: "Scheduler"},
			&cli.StringFlag{Name: "teacher", Usage: "imitate policy `NAME[:key[=value]...]` first", DefaultText: "drf", Category: "Training"},
			&cli.StringFlag{Name: "config", Usage: "read settings of the training from YAML `FILE`", Category: "Training"},
			&cli.StringSliceFlag{Name: "set", Usage: "change settings of the training: `KEY=VALUE,...` (repeatable)", Category: "Training"},
			&cli.StringFlag{Name: "from", Usage: "continue with the policy in `FILE`", Category: "Training"},
			&cli.StringFlag{Name: "out", Usage: "write the policy to `FILE`", Category: "Output"},
			&cli.BoolFlag{Name: "compact", Usage: "write only what policy dl2 needs, in half precision; training cannot continue from it", Category: "Output"},
			&cli.StringFlag{Name: "curve-out", Usage: "write the learning curve to `FILE`.csv, a row per update and iteration", Category: "Output"},
			&cli.StringFlag{Name: "svg", Usage: "draw the learning curve into `FILE`", Category: "Output"},
		}),
		Before: command.NoArgs,
		Action: runLearnDL2,
	}
}

const learnDL2Help = `A network chooses which job gets one more device, until it ends the slot (Peng et
al., DL2, IEEE TPDS 2021). It first imitates --teacher, any policy of pacer ls
policies, for so many updates; then it learns by reinforcement from its own
decisions on simulated workloads. It is validated every 25 updates and some
iterations on workloads it does not learn from; --out holds the best policy so far,
always complete: the copy that agrees most with the teacher, then the policy with the
least JCT. Imitation alone takes about a minute:

   pacer learn dl2 --workload synthetic:jobs=60,models=BERT-large+Llama3-8B \
       --cluster 4x8xH100 --truth fitted:analytic --teacher optimus-oracle \
       --set slot=300,iterations=0 --out policy.bin
   pacer simulate --workload synthetic:jobs=60,models=BERT-large+Llama3-8B \
       --cluster 4x8xH100 --truth fitted:analytic --seed 2 \
       --policy dl2:model=policy.bin,optimus-oracle

A workload synthetic:... is drawn anew for every episode; give simulate another
--seed than training had. With a file of jobs every episode has as many, drawn from
them with their gaps in another order. The policy knows the models of the workload;
jobs of others run as submitted. With more jobs than setting jobs it decides about
so many at a time, by arrival.

--from FILE continues a policy of the same jobs, models and slot. If a loss stops
being a number, training ends with exit code 1, and --out keeps the best policy.

Settings, as keys of --config and --set, with their defaults; the costs and failures
of pacer simulate are settings too, such as start-cost:

`

// trainingTable lists the settings of a training.
func trainingTable() string {
	var b strings.Builder
	for _, s := range experiment.TrainingSettings() {
		fmt.Fprintf(&b, "   %-12s %s\n", s.Name, s.Default)
		for _, line := range report.Wrap(s.Doc, command.HelpWidth-8) {
			fmt.Fprintf(&b, "     %s\n", line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// trainingOptions reads the flags: first the file of --config, then --set, then the flags
// of single settings.
func trainingOptions(c *cli.Context) (experiment.TrainingOptions, error) {
	o := experiment.DefaultTraining()
	if path := c.String("config"); path != "" {
		if err := o.ReadFile(path); err != nil {
			return o, err
		}
	}
	set, err := command.Pairs(c, "set")
	if err != nil {
		return o, err
	}
	if c.IsSet("teacher") {
		set["teacher"] = c.String("teacher")
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if err := o.Set(key, set[key]); err != nil {
			return o, err
		}
	}
	setOptions(c, &o.Simulation)
	return o, nil
}

// learnRun is a training with its learning curve.
type learnRun struct {
	*experiment.Training
	from   *dl2.Model
	points []learn.Point
	best   learn.Point
	done   atomic.Int64 // updates of the phase, for the progress
}

func newLearnRun(c *cli.Context) (*learnRun, error) {
	o, err := trainingOptions(c)
	if err != nil {
		return nil, fmt.Errorf("learn: %w", err)
	}
	run := &learnRun{}
	if run.Training, err = experiment.NewTraining(c.Context, o); err != nil {
		return nil, fmt.Errorf("learn: %w", err)
	}
	if from := c.String("from"); from != "" {
		if run.from, err = dl2.Read(from); err != nil {
			return nil, fmt.Errorf("learn: %w", err)
		}
	}
	return run, nil
}

func runLearnDL2(c *cli.Context) (err error) {
	out := c.String("out")
	if out == "" {
		return fail.Usagef("learn: --out is missing: FILE for the policy")
	}
	began := time.Now()
	run, err := newLearnRun(c)
	if err != nil {
		return err
	}
	files, err := command.OpenFiles(c, "curve-out", "svg")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Discard()) }()
	err = run.train(c, out)
	if f := files["curve-out"]; f != nil {
		err = errors.Join(err, f.Write(func(w io.Writer) error { return learn.WriteCSV(w, run.points) }))
	}
	if f := files["svg"]; f != nil {
		err = errors.Join(err, f.Write(func(w io.Writer) error { return learn.WriteSVG(w, run.points) }))
	}
	if err != nil {
		return experiment.TrainingError(err)
	}
	return run.print(c, out, time.Since(began))
}

// train trains the policy and keeps the best one in out.
func (run *learnRun) train(c *cli.Context, out string) error {
	t, err := learn.NewTrainer(run.Options, run.Episode, run.from)
	if err != nil {
		return err
	}
	t.Save = func(m *dl2.Model) error {
		return savePolicy(out, m, run.Origin(c.App.Version), c.Bool("compact"))
	}
	t.OnPoint = func(p learn.Point) error {
		if p.Best {
			run.best = p
		}
		run.points = append(run.points, p)
		run.done.Store(int64(p.Update))
		if p.Update == 1 {
			command.ShowProgress(c, console.Counting("learn: "+p.Phase+" "+unitOf(p)+" %d of %d", p.Of, func() int { return int(run.done.Load()) }))
		}
		run.progress(c.App.ErrWriter, p)
		return nil
	}
	_, err = t.Run(c.Context)
	return err
}

// savePolicy writes a policy whole, or leaves what was there.
func savePolicy(path string, m *dl2.Model, origin map[string]string, compact bool) error {
	m.Origin = origin
	b, err := m.Encode(compact)
	if err != nil {
		return err
	}
	f, err := console.Create(path)
	if err != nil {
		return fmt.Errorf("learn: --out: %w", err)
	}
	return f.Write(func(w io.Writer) error { _, err := w.Write(b); return err })
}

// unitOf returns what Update of a point counts.
func unitOf(p learn.Point) string {
	if p.Phase == "supervised" {
		return "update"
	}
	return "iteration"
}

// progress prints a validation to standard error.
func (run *learnRun) progress(w io.Writer, p learn.Point) {
	if p.JCTSec == 0 {
		return
	}
	fmt.Fprintf(w, "learn: %s %s %d of %d: loss %.4g, mean JCT %.0f s on validation", p.Phase, unitOf(p), p.Update, p.Of, p.Losses.Policy, p.JCTSec)
	if p.Teacher > 0 {
		fmt.Fprintf(w, ", %.3f x the teacher's", p.JCTSec/p.Teacher)
	}
	if p.Agreement > 0 {
		fmt.Fprintf(w, ", %.2f %% of its actions as the teacher's", 100*p.Agreement)
	}
	if p.Best {
		fmt.Fprint(w, ", the best so far")
	}
	fmt.Fprintln(w)
}

// print writes the figures of the trained policy.
func (run *learnRun) print(c *cli.Context, path string, took time.Duration) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	last, best := run.points[len(run.points)-1], run.best
	row := learnRow{File: path, Bytes: info.Size(), Jobs: run.Form.Jobs, Models: run.Form.Types, SlotSec: run.Form.SlotSec, Servers: run.Form.Servers,
		Teacher: run.Supervised.Teacher, TeacherJCT: last.Teacher, JCT: best.JCTSec, Phase: best.Phase, Update: best.Update, Elapsed: took.Seconds()}
	if run.Supervised.Updates == 0 {
		row.Teacher = ""
	}
	return row.write(c)
}

// learnRow is the JSON of a trained policy.
type learnRow struct {
	File       string   `json:"file"`
	Bytes      int64    `json:"bytes"`
	Jobs       int      `json:"jobs"`
	Models     []string `json:"models"`
	SlotSec    float64  `json:"slot_s"`
	Servers    bool     `json:"parameter_servers"`
	Teacher    string   `json:"teacher,omitempty"`
	TeacherJCT float64  `json:"teacher_avg_jct_s,omitempty"`
	JCT        float64  `json:"avg_jct_s"`
	Phase      string   `json:"phase"`
	Update     int      `json:"update"`
	Elapsed    float64  `json:"elapsed_s"`
}

func (r learnRow) write(c *cli.Context) error {
	return command.Print(c, console.Result{JSON: r, CSV: [][]string{
		{"file", "jobs", "models", "slot_s", "teacher", "teacher_avg_jct_s", "avg_jct_s", "phase", "update", "bytes"},
		{r.File, strconv.Itoa(r.Jobs), strings.Join(r.Models, " + "), fmt.Sprintf("%g", r.SlotSec), r.Teacher,
			fmt.Sprintf("%.1f", r.TeacherJCT), fmt.Sprintf("%.1f", r.JCT), r.Phase, strconv.Itoa(r.Update), strconv.FormatInt(r.Bytes, 10)},
	}})
}
