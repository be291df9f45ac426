package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Options select a run of a campaign, and the machine and runner that measure it.
type Options struct {
	Label   string // of the run
	Reuse   bool   // use stored rows of other sources too
	Devices string // indices such as 0,1; cpu for the CPU; "" = all
	Runner  string // replaces the runner of the file: torchrun, synthetic or replay:SOURCE
	Assume  string // a machine NxACCELERATOR in place of this one
	For     string // file of pacer plan --output json with the plans to predict best; "" = all points alike
	Seed    uint64
	Dry     bool // nothing is measured: the set-up may be incomplete
	// Cluster measures the points as jobs, nil = this machine. JobDir is a directory that its nodes see, GPUs the number per
	// node, 0 = the CPUs, Nodes that of nodes that a point may use, and Parallel the number of jobs at a time.
	Cluster               executor.Cluster
	Program               string // path of pacer on the nodes, "" = that of this program
	JobDir                string
	GPUs, Nodes, Parallel int
	NetworkGbps           float64 // of a node, 0 = as it says itself, else that of the usual node
	// Space, if set, returns the space on a machine in place of that of the campaign.
	Space func(context.Context, profiler.Machine) (profiler.Space, error)
	// Measured, if set, returns spec.Accelerator.Measured of an accelerator by name.
	Measured func(ctx context.Context, accelerator string) (string, error)
	job      bool         // this process is a job
	team     *runner.Team // of the job, nil = one node
}

// RowSource reads stored rows.
type RowSource func(context.Context, store.Filter) ([]spec.Measurement, error)

// Session is a campaign that is ready to run.
type Session struct {
	Campaign profiler.Campaign
	*Setup
	Points   []profiler.Point
	Rejected []profiler.Rejected // combinations that cannot be run
	Profiler profiler.Options    // without Sink and Progress
}

// Open reads a campaign file and prepares its run. The caller closes the session, which
// is nil after an error.
func Open(ctx context.Context, path string, o Options, rows RowSource) (*Session, error) {
	if err := profiler.CheckLabel(o.Label); err != nil {
		return nil, fail.Usagef("profile: --label: %w", err)
	}
	camp, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Prepare(ctx, camp, o, rows)
}

// Prepare prepares a run of camp. The caller closes the session, which is nil after an error.
func Prepare(ctx context.Context, camp profiler.Campaign, o Options, rows RowSource) (_ *Session, err error) {
	if err := o.overrideRunner(&camp); err != nil {
		return nil, err
	}
	fam, err := family.Lookup(cmp.Or(camp.Family, family.Default))
	if err != nil {
		return nil, fail.Usagef("profile: campaign %s: %w", camp.Name, err)
	}
	wanted, err := wantedPlans(o.For)
	if err != nil {
		return nil, err
	}
	setup, err := newSetup(ctx, camp, o, rows)
	if a := &setup.Machine.Accelerator; err == nil && o.Measured != nil {
		a.Measured, err = o.Measured(ctx, a.Name)
	}
	s := &Session{Campaign: camp, Setup: &setup}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err == nil && o.Space != nil {
		camp.Space, err = o.Space(ctx, setup.Machine)
		s.Campaign.Space = camp.Space
	}
	if err != nil {
		return nil, err
	}
	if s.Points, s.Rejected, err = setup.points(camp); err != nil {
		return nil, err
	}
	s.Profiler = profiler.Options{Machine: s.Machine, Runner: s.Runner, Family: fam, Label: o.Label, Reuse: o.Reuse, For: wanted, Seed: o.Seed, Parallel: o.Parallel}
	if len(s.Points) > 0 || o.Dry {
		if s.Profiler.Rows, err = rows(ctx, o.filter(camp)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close releases the machine.
func (s *Session) Close() {
	if s.close != nil {
		s.close()
	}
}

// NoPoints is the error of a campaign without a point that can be run.
func (s *Session) NoPoints() error {
	hint := ""
	tooFew := slices.ContainsFunc(s.Rejected, func(r profiler.Rejected) bool {
		return r.Group == profiler.ForDevices && r.Config.Plan.Devices() > len(s.Machine.Devices)
	})
	if tooFew && !s.Campaign.Space.Alone && s.Campaign.Runner.Name == profiler.RunnerTorchrun {
		hint = "; for plans of more devices, alone: true in space measures one rank at a time, and --on runs on a cluster"
	}
	return fail.NoAnswerf("profile: campaign %s: no point can be run on this machine; the reasons are above%s", s.Campaign.Name, hint)
}

// Unusable is the error of a run without a row that can be fitted, nil if it has a usable row or no rows at all.
func (s *Session) Unusable(rows []spec.Measurement) error {
	if len(rows) == 0 || slices.ContainsFunc(rows, perfmodel.UsableOrAlone) {
		return nil
	}
	last, what := rows[len(rows)-1], "ran"
	for _, m := range rows {
		if m.Outcome == spec.OK {
			last, what = m, "is usable"
		}
	}
	points := len(profiler.Latest(rows))
	return fail.Partialf("profile: campaign %s: none of its %s %s; the last: %s", s.Campaign.Name, spec.Count(points, "point"), what, PointResult(last))
}

// OwnRows returns the stored rows that the run itself measured.
func (s *Session) OwnRows() (own []spec.Measurement) {
	for _, m := range s.Profiler.Rows {
		if m.Source == s.Campaign.Source() && m.Env[profiler.EnvRun] == s.Profiler.Label {
			own = append(own, m)
		}
	}
	return own
}

// badField is the error of an option.
func badField(field string, value any, format string, args ...any) error {
	return &query.FieldError{Field: field, Value: value, Why: fmt.Sprintf(format, args...)}
}

// overrideRunner replaces the runner of the file.
func (o *Options) overrideRunner(camp *profiler.Campaign) error {
	name, source, _ := strings.Cut(o.Runner, ":")
	switch {
	case name == "":
		return nil
	case name == profiler.RunnerReplay && source != "":
		camp.Runner.Source = source
	case name == profiler.RunnerReplay:
		return badField("runner", o.Runner, "needs the source of the stored rows, such as replay:rubick")
	case name != profiler.RunnerTorchrun && name != profiler.RunnerSynthetic || source != "":
		return badField("runner", o.Runner, "is not torchrun, synthetic or replay:SOURCE")
	case camp.Space.Measured:
		return badField("runner", o.Runner, "has no table, and campaign %s measures the rows of a table", camp.Name)
	}
	camp.Runner.Name = name
	return nil
}

// filter chooses the stored rows that a run of camp may use: its own, or with Reuse all rows
// of its models.
func (o *Options) filter(camp profiler.Campaign) store.Filter {
	if !o.Reuse {
		return store.Filter{Sources: []string{camp.Source()}}
	}
	var f store.Filter // all models if the campaign names none
	for _, m := range camp.Models {
		f.Models = append(f.Models, m.Name)
	}
	return f
}

// maxFile bounds a campaign file, in bytes.
const maxFile = 1 << 20

// Read reads a campaign file.
func Read(path string) (profiler.Campaign, error) {
	text, err := query.ReadFile("campaign", path, maxFile)
	if err != nil {
		return profiler.Campaign{}, fmt.Errorf("profile: %w", err)
	}
	camp, err := profiler.ReadCampaign(path, text, catalog.ModelOnHub)
	if err != nil {
		return camp, fail.WithCode(fail.Usage, err)
	}
	if want := camp.Space.Accelerator; want != "" && want != profiler.AnyGPU {
		camp.Space.Accelerator = query.CatalogNames([]string{want})[0]
	}
	return camp, nil
}

// Named returns the campaign of an argument, which is a file or a name; camp is nil for a name.
func Named(arg string) (name string, camp *profiler.Campaign, err error) {
	ext := filepath.Ext(arg)
	st, statErr := os.Stat(arg)
	if ext != ".yaml" && ext != ".yml" && (statErr != nil || st.IsDir()) {
		return strings.TrimPrefix(arg, profiler.SourcePrefix), nil, nil
	}
	read, err := Read(arg)
	return read.Name, &read, err
}

// SetupError returns err; an error of the set-up gets the exit code of a failure.
func SetupError(err error) error {
	if errors.Is(err, profiler.ErrSetup) {
		return fail.WithCode(fail.Failed, err)
	}
	return err
}
