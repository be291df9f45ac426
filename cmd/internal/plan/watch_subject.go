package plan

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler"
)

// watchSubject is what a command trains, and the prediction of it.
type watchSubject struct {
	found  query.Resolved
	config spec.Config
	row    *query.PlanRow // nil without a prediction
	why    string         // there is none
}

// resolve finds out what a command trains: by --config, by --plan and the other flags, or by its arguments.
func (w *watch) resolve(args []string) (*watchSubject, error) {
	w.run = importer.Run{WarmUp: w.c.Int("warmup-steps"), Source: "watch"}
	r, err := datadir.Of(w.c).Resolver()
	if err != nil {
		return nil, err
	}
	s := &watchSubject{}
	if path := w.c.String("config"); path != "" {
		err = w.fromConfig(r, s, path)
	} else {
		err = w.fromFlags(r, s, args)
	}
	if err != nil {
		return nil, err
	}
	s.predict(w)
	return s, nil
}

func (w *watch) fromConfig(r *query.Resolver, s *watchSubject, path string) (err error) {
	for _, name := range []string{"model", "accelerator", "plan", "devices", "shape", "seq", "framework"} {
		if w.c.IsSet(name) {
			return fail.Usagef("watch: --%s conflicts with --config: the file has it", name)
		}
	}
	warmUp := w.run.WarmUp
	if w.run, err = importer.ReadRun(path, w.run.Source); err != nil {
		return err
	}
	if w.c.IsSet("warmup-steps") {
		w.run.WarmUp = warmUp
	}
	s.config = w.run.Config
	s.found, err = r.ResolveConfig(s.config)
	return err
}

func (w *watch) fromFlags(r *query.Resolver, s *watchSubject, args []string) error {
	q, err := looseRequest(w.c)
	var here spec.Accelerator
	if err == nil && q.Accelerator == "" {
		here, err = w.thisMachine(r, &q)
	}
	if err != nil {
		return err
	}
	if plan := cmp.Or(w.c.String("plan"), os.Getenv(child.PlanVariable)); plan == "" {
		err = w.fromCommand(r, s, q, args)
	} else if s.found, err = r.Resolve(w.c.Context, q); err == nil {
		err = s.found.Fix(&q, query.FixedPlan{Plan: plan, Devices: w.c.Int("devices"), Shape: w.c.String("shape")})
	}
	if err != nil {
		return err
	}
	if here.Name != "" {
		s.found.Accelerator = here
	}
	s.config = s.found.Config()
	return nil
}

// thisMachine sets the accelerator of q to that of this machine. One that neither the catalog nor the store has is returned
// as the machine describes it.
func (w *watch) thisMachine(r *query.Resolver, q *query.Request) (here spec.Accelerator, err error) {
	o := campaign.Options{}
	m, _, err := o.Machine(campaign.Inspect(w.c.Context), profiler.Campaign{})
	if err != nil {
		return here, err
	}
	if _, _, err := r.FindAccelerator(w.c.Context, m.Accelerator.Name); err == nil {
		q.Accelerator = m.Accelerator.Name
		return here, nil
	}
	chip := m.Accelerator
	chip.Arch = "" // that of a CPU is none of the catalog
	q.Chip = query.Chip{Accelerator: chip, Node: spec.Node{Name: "this machine", Accelerator: chip.Name, Devices: m.PerNode, Link: m.Link}}
	return m.Accelerator, nil
}

// fromCommand reads what a command trains from its arguments, else from the files that they name.
func (w *watch) fromCommand(r *query.Resolver, s *watchSubject, q query.Request, args []string) (err error) {
	text, err := child.Quote(args)
	if err != nil {
		return err
	}
	check := query.CheckRequest{Request: q, File: "launch.sh", Text: []byte(text + "\n"), Devices: w.c.Int("devices")}
	found, _, first := r.LaunchFile(w.c.Context, check)
	if s.found = found; first == nil {
		return nil
	}
	for _, word := range args {
		if !isScript(word) {
			continue
		}
		check.File = word
		if check.Text, err = os.ReadFile(word); err != nil {
			return err
		}
		if s.found, _, err = r.LaunchFile(w.c.Context, check); err == nil {
			return nil
		}
		first = err
	}
	return fmt.Errorf("what the command trains is not understood, want --model and --plan, or --config: %w", first)
}

// predict fills in the prediction.
func (s *watchSubject) predict(w *watch) {
	choice, err := planner.New(s.found.Predictor, planner.Options{}).Fixed(w.c.Context, s.found.Request)
	if err != nil {
		s.why = command.Message(err)
		return
	}
	row := query.NewPlanRow(choice)
	if s.row = &row; !(row.StepTimeSec > 0) {
		s.why = cmp.Or(row.Why, "the model has no step time")
	}
}

// watchReport is the JSON of pacer watch.
type watchReport struct {
	Model       string            `json:"model"`
	Accelerator string            `json:"accelerator"`
	Plan        string            `json:"plan"`
	Outcome     string            `json:"outcome"`
	Steps       int               `json:"steps"`       // timed
	StepS       float64           `json:"step_time_s"` // median
	MemGiB      float64           `json:"mem_gib"`     // peak
	MFU         float64           `json:"mfu,omitempty"`
	Warning     string            `json:"warning,omitempty"`
	Predicted   *query.PlanRow    `json:"predicted,omitempty"`
	NoPredicted string            `json:"not_predicted,omitempty"` // why
	Compared    *query.Comparison `json:"compared,omitempty"`
	Stored      string            `json:"stored,omitempty"`     // directory or server
	NotStored   string            `json:"not_stored,omitempty"` // why
}

func (s *watchSubject) report(m *spec.Measurement) watchReport {
	r := watchReport{Model: s.config.Model.Name, Accelerator: s.config.Accelerator.Name, Plan: s.config.Plan.String(), Outcome: string(m.Outcome),
		Steps: len(m.StepSec), StepS: stats.Median(m.StepSec), MemGiB: m.PeakBytes / memory.GiB, Warning: m.Env[profiler.EnvWarning], Predicted: s.row, NoPredicted: s.why}
	if m.Outcome == spec.OK {
		r.MFU = query.UtilizationOf(&s.config, m.Throughput()).MFU
		if s.why == "" {
			r.Compared = query.Compare(&s.found, s.config, s.row, r.StepS)
		}
	}
	return r
}

// line says how far a run is.
func (s *watchSubject) line(m *spec.Measurement) string {
	r := s.report(m)
	text := fmt.Sprintf("%s, median %s s", spec.Count(r.Steps, "timed step"), number.Significant(r.StepS, 3))
	if r.Compared != nil {
		text += fmt.Sprintf(", %.2f times the predicted one", r.Compared.Ratio)
	}
	if r.MemGiB > 0 {
		text += fmt.Sprintf(", %s GiB", number.Significant(r.MemGiB, 3))
	}
	return text
}

// printWatch writes to standard error: standard output is the command's.
func printWatch(c *cli.Context, r watchReport) error {
	return console.Result{JSON: r, CSV: r.table(), Table: func(out io.Writer) error {
		fmt.Fprintf(out, "pacer watch: %s on %s, %s\n", r.Model, r.Accelerator, r.Plan)
		if r.StepS > 0 {
			if err := console.WriteTable(out, r.table()); err != nil {
				return err
			}
		}
		if r.NoPredicted != "" {
			fmt.Fprintf(out, "no prediction: %s\n", r.NoPredicted)
		}
		if r.Warning != "" {
			fmt.Fprintf(out, "warning: %s\n", r.Warning)
		}
		var err error
		if r.Compared != nil && r.StepS > r.Predicted.StepTimeHi {
			err = printComparison(out, r.Compared)
		}
		if r.NotStored != "" {
			fmt.Fprintf(out, "not stored: %s\n", r.NotStored)
			return err
		}
		fmt.Fprintf(out, "stored in %s\n", r.Stored)
		return err
	}}.Write(c.App.ErrWriter, command.Global(c, "output"))
}

func (r *watchReport) table() [][]string {
	percent := func(v float64) string {
		if v == 0 {
			return ""
		}
		return number.Significant(100*v, 3) + " %"
	}
	measured := []string{"measured", number.Significant(r.StepS, 4), "", "", percent(r.MFU)}
	if r.MemGiB > 0 {
		measured[3] = number.Significant(r.MemGiB, 3)
	}
	table := [][]string{{spec.Count(r.Steps, "step"), "step s", "90 % interval", "GiB", "MFU"}, measured}
	if p := r.Predicted; p != nil && r.NoPredicted == "" {
		table = append(table, []string{"predicted", number.Significant(p.StepTimeSec, 4), number.Significant(p.StepTimeLo, 3) + " to " + number.Significant(p.StepTimeHi, 3),
			number.Significant(p.MemGiB, 3), percent(p.MFU)})
	}
	return table
}
