package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/batch"
	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Options select what is calibrated, and where.
type Options struct {
	Model       string // a name, a campaign file or a config.json
	Only        string // one model of a campaign file, "" = all
	Likely      bool   // propose plans in place of the space of a campaign file
	Accelerator string // "" = that of this machine, or of the campaign
	Devices     int    // 0 = all of the machine, or those of the largest plan that a campaign file has measured alone
	Alone       bool   // measure plans for more devices than the machine has one rank at a time
	GlobalBatch int    // of the proposed plans on all devices, 0 = nextplans.UsualBatch per device
	Seq         int    // tokens per sample, 0 = the model's own
	Budget      time.Duration
	Label       string
	Runner      string // "" = torchrun, or that of the campaign file
	Seed        uint64

	// With Emit or Rows, others measure.
	Emit   string // framework that launch files are written for, "" = none
	Points int    // plans to emit
	Rows   string // file of rows: written with Emit, else read
}

// Bounds of Options.
const (
	maxPoints  = 20
	maxDevices = 1 << 16
)

// validate returns a *query.FieldError for a number out of range.
func (o *Options) validate() error {
	for _, f := range []struct {
		name    string
		n, most int
	}{{"devices", o.Devices, maxDevices}, {"global_batch", o.GlobalBatch, query.MaxBatch}, {"seq", o.Seq, query.MaxSeq}, {"points", o.Points, maxPoints}} {
		if err := query.InRange(f.name, f.n, f.most); f.n != 0 && err != nil {
			return err
		}
	}
	return nil
}

// Run calibrates in the way of o, with data in d, and returns what to print. partial reports rows that could not
// be used; they and the progress are written to log.
func Run(ctx context.Context, o Options, d *datadir.Dir, stdin io.Reader, log io.Writer) (_ console.Result, partial bool, err error) {
	var r interface{ Result() console.Result }
	if err = o.validate(); err != nil {
		return console.Result{}, false, err
	}
	switch {
	case o.Emit != "" && o.Rows == "":
		err = fail.Usagef("calibrate: --rows is missing: the file to enter the results in")
	case o.Emit != "":
		r, err = emit(ctx, o, d, log)
	case o.Rows != "":
		r, partial, err = fromRows(ctx, o, batch.Opener("calibrate", stdin), d, log)
	default:
		r, err = here(ctx, o, d, log)
	}
	if err != nil {
		return console.Result{}, false, err
	}
	return r.Result(), partial, nil
}

// here calibrates on this machine. Its rows and fits go to d, its progress to log.
func here(ctx context.Context, o Options, d *datadir.Dir, log io.Writer) (_ *Report, err error) {
	var db *datadir.Rows // opened once the model and the machine are known
	defer func() {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	read := func(use func(reader.Store) error) error {
		if db != nil {
			return use(db)
		}
		return d.ReadServed(use)
	}
	s, warnings, err := open(ctx, o, &query.Resolver{Read: read}, func(ctx context.Context, f store.Filter) (_ []spec.Measurement, err error) {
		if db == nil {
			if db, err = d.OpenRows(store.Options{}); err != nil {
				return nil, err
			}
		}
		return query.RowsOf(ctx, db, f)
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	printWarnings(log, warnings)
	s.PrintNotes(log)
	if db.Served != nil {
		fmt.Fprintf(log, "calibrate: rows are posted to pacer serve at %s\n", db.Served.Address())
	}
	fmt.Fprintln(log, s.intent())
	rows, err := s.measure(ctx, db, log)
	if err != nil {
		return nil, err
	}
	reg, err := d.Fitted()
	if err != nil {
		return nil, err
	}
	s.read = func(f store.Filter) ([]spec.Measurement, error) { return query.RowsOf(ctx, db, f) }
	return s.report(ctx, rows, reg)
}

func printWarnings(w io.Writer, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintln(w, "warning:", text)
	}
}

// open prepares a calibration on this machine, and returns warnings about the model. rows reads the stored rows.
// The caller closes the session, which is nil after an error.
func open(ctx context.Context, o Options, d *query.Resolver, rows campaign.RowSource) (_ *session, warnings []string, err error) {
	if err := cmp.Or(profiler.CheckLabel(heldOutLabel(o.Label)), profiler.CheckLabel(repeatLabel(o.Label))); err != nil {
		return nil, nil, fail.Usagef("calibrate: --label: %w", err)
	}
	if o.Budget <= 0 {
		return nil, nil, fail.Usagef("calibrate: --budget %s is not positive, want a time such as 5m", o.Budget)
	}
	camp, warnings, err := o.campaign(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	out := &session{o: o}
	with := campaign.Options{Label: o.Label, Runner: o.Runner, Seed: o.Seed, Measured: d.MeasuredText}
	with.Space = func(ctx context.Context, m profiler.Machine) (profiler.Space, error) {
		if err := out.o.check(m); err != nil {
			return profiler.Space{}, err
		}
		return out.o.space(ctx, camp, m)
	}
	o.machine(camp, &with)
	if out.Session, err = campaign.Prepare(ctx, camp, with, rows); err != nil {
		return nil, warnings, err
	}
	out.o.Devices = cmp.Or(out.o.Devices, largestPlan(out.Points))
	out.Points = slices.DeleteFunc(out.Points, func(p profiler.Point) bool { return !out.inRange(p.Config) })
	if out.o.Alone {
		out.wantWholePlans()
	}
	out.Machine.Devices = out.Machine.Devices[:min(out.o.Devices, len(out.Machine.Devices))]
	if len(out.Points) == 0 {
		out.Close()
		return nil, warnings, fail.NoAnswerf("calibrate: %s has no plan that runs on %s of this machine; pacer profile plan and pacer plan say why",
			o.Model, spec.Count(out.o.Devices, "device"))
	}
	return out, warnings, nil
}

// machine selects the machine to measure on. Only the synthetic runner assumes one.
func (o *Options) machine(camp profiler.Campaign, with *campaign.Options) {
	if o.isCPU() {
		with.Devices = o.Accelerator
	}
	if cmp.Or(o.Runner, camp.Runner.Name) == profiler.RunnerSynthetic && o.Accelerator != "" && !o.isCPU() {
		have := max(o.Devices, 1)
		if o.Alone {
			have = 1
		}
		with.Assume = fmt.Sprintf("%dx%s", have, o.Accelerator)
	}
}

func (o *Options) isCPU() bool { return strings.EqualFold(o.Accelerator, "cpu") }

// batch is the global batch of proposed plans on all devices.
func (o *Options) batch() int { return cmp.Or(o.GlobalBatch, nextplans.UsualBatch*o.Devices) }

// isCampaign reports whether --model names a campaign file.
func (o *Options) isCampaign() bool {
	ext := strings.ToLower(filepath.Ext(o.Model))
	return ext == ".yaml" || ext == ".yml"
}

// campaign returns the campaign that stores the rows.
func (o *Options) campaign(ctx context.Context, d *query.Resolver) (camp profiler.Campaign, warnings []string, err error) {
	name := ""
	if o.isCampaign() {
		if camp, err = campaign.Read(o.Model); err == nil {
			name = camp.Name
			o.Alone = o.Alone || camp.Space.Alone && !o.Likely
			err = cmp.Or(o.onlyModel(&camp), o.checkAlone(camp.Runner.Name))
		}
	} else {
		var m spec.Model
		m, warnings, err = o.model(ctx, d)
		name, camp.Models = m.Name, []spec.Model{m}
		camp.Point = pointOptions(o.Budget)
		err = cmp.Or(err, o.checkAlone(""))
	}
	if err != nil {
		return camp, nil, err
	}
	if o.Only != "" {
		name += "-" + camp.Models[0].Name
	}
	name = "calibrate-" + campaign.SafeName(name)
	camp.Name, camp.Family, camp.Until = name, family.Default, profiler.Until{}
	return camp, warnings, nil
}

// checkAlone refuses ranks alone under a runner, that of the campaign file, which cannot measure them.
func (o *Options) checkAlone(runner string) error {
	name, _, _ := strings.Cut(cmp.Or(o.Runner, runner), ":")
	if o.Alone && (name == profiler.RunnerReplay || name == profiler.RunnerCommand) {
		return fail.Usagef("calibrate: runner %s cannot measure one rank without the others (--alone, or alone: true): torchrun can", name)
	}
	return nil
}

// model returns the model of a name or config.json.
func (o *Options) model(ctx context.Context, d *query.Resolver) (m spec.Model, warnings []string, err error) {
	if o.Only != "" || o.Likely {
		return m, nil, fail.Usagef("calibrate: --only and --likely go with a campaign file; --model %s is none", o.Model)
	}
	if path, isFile := query.ConfigPath(o.Model); isFile {
		m, warnings, err = query.ReadConfig(path, o.Seq > 0)
	} else {
		m, err = d.FindModel(ctx, o.Model)
	}
	if err == nil && m.SeqLen == 0 && o.Seq == 0 {
		err = &query.FieldError{Field: "seq", Value: "", Why: "is missing: how many tokens has a sample?"}
	}
	m.SeqLen = cmp.Or(o.Seq, m.SeqLen)
	return m, warnings, err
}

// onlyModel removes the models of a campaign file other than Only.
func (o *Options) onlyModel(camp *profiler.Campaign) error {
	var names []string
	for _, m := range camp.Models {
		names = append(names, m.Name)
	}
	if i := slices.Index(names, o.Only); i >= 0 {
		camp.Models = camp.Models[i : i+1]
	} else if o.Only != "" {
		return fail.Usagef("calibrate: --only %q is not a model of %s, want one of %s", o.Only, o.Model, strings.Join(names, ", "))
	}
	switch {
	case o.Seq > 0:
		return fail.Usagef("calibrate: --seq %d conflicts with --model %s, which has it", o.Seq, o.Model)
	case o.Likely && len(camp.Models) != 1:
		return fail.Usagef("calibrate: --likely proposes plans for one model: choose it with --only (%s)", strings.Join(names, ", "))
	case o.GlobalBatch > 0 && !o.Likely:
		return fail.Usagef("calibrate: --global-batch %d conflicts with --model %s, which has the plans; --likely proposes others", o.GlobalBatch, o.Model)
	}
	return nil
}

// pointOptions are those of proposed plans: about thirty points fit in a budget.
func pointOptions(budget time.Duration) profiler.PointOptions {
	timeout := min(max(budget/4, 10*time.Second), 5*time.Minute)
	return profiler.PointOptions{Timeout: timeout, MaxTime: min(max(budget/60, time.Second), timeout/2)}
}

// check sets the number of devices and reports a machine other than the requested one.
func (o *Options) check(m profiler.Machine) error {
	have := m.Accelerator.Name
	if o.Accelerator != "" && len(query.Match(o.Accelerator, []string{have})) == 0 && query.CatalogNames([]string{o.Accelerator})[0] != have {
		return fail.NoAnswerf("calibrate: --accelerator %q: this machine has %s; --emit writes what to run elsewhere", o.Accelerator, have)
	}
	if o.Devices > len(m.Devices) && !o.Alone {
		return fail.NoAnswerf("calibrate: --devices %d: this machine has %d x %s; --alone measures one rank at a time of plans for more, --emit writes what to run elsewhere", o.Devices, len(m.Devices), have)
	}
	if !o.Alone || !o.isCampaign() || o.Likely {
		o.Devices = cmp.Or(o.Devices, len(m.Devices))
	}
	return nil
}

// space returns the configurations that may be measured on m.
func (o *Options) space(ctx context.Context, camp profiler.Campaign, m profiler.Machine) (profiler.Space, error) {
	name, _, _ := strings.Cut(o.Runner, ":")
	switch {
	case o.isCampaign() && !o.Likely:
		camp.Space.Alone = o.Alone
		return camp.Space, nil
	case cmp.Or(name, camp.Runner.Name) == profiler.RunnerReplay:
		return profiler.Space{Measured: true}, nil
	}
	s := profiler.Space{Alone: o.Alone}
	model := camp.Models[0]
	r := planner.Request{Model: model, SeqLen: model.SeqLen, Accelerator: m.Accelerator, Link: m.Link, Framework: m.Framework,
		PerNode: m.PerNode, NodeHostBytes: m.HostBytes, Devices: o.Devices, GlobalBatch: o.batch()}
	if m.CPU {
		r.Precision = spec.FP32
	}
	if o.Devices > len(m.Devices) { // of nodes as they usually are
		r.PerNode = max(m.PerNode, query.NodeOf(m.Accelerator).Devices)
	}
	configs, err := likely(ctx, r, func(c spec.Config) bool {
		if c.Plan.Devices() > len(m.Devices) {
			c.AloneStage = 1
		}
		return m.Lacks == nil || m.Lacks(c) == ""
	})
	if err != nil {
		return profiler.Space{}, err
	}
	for _, c := range configs {
		s.Plans = append(s.Plans, c.Plan)
		if shape := spec.Packed(c.Plan.Devices(), max(r.PerNode, len(m.Devices))); !slices.Contains(s.Shapes, shape) {
			s.Shapes = append(s.Shapes, shape)
		}
	}
	return s, nil
}

// likely returns the likely plans of a request, by predictions without a fit, so that measurements do not change them.
func likely(ctx context.Context, r planner.Request, can func(spec.Config) bool) ([]spec.Config, error) {
	p, err := query.Unfitted(family.Default)
	if err != nil {
		return nil, err
	}
	return nextplans.Likely(ctx, planner.New(p, planner.Options{}), r, can)
}
