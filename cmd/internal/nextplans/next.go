package nextplans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// MaxPoints bounds the plans of an answer.
const MaxPoints = 64

// CalibrateNextRequest asks which plans to measure next.
type CalibrateNextRequest struct {
	query.Request
	answer.Described
	Devices     int     `json:"devices" minimum:"1" maximum:"65536" example:"16" doc:"The most devices of a plan; plans on 1, 2, 4, ... of them are considered too."`
	Points      int     `json:"points,omitempty" minimum:"1" maximum:"64" doc:"The most plans of the answer; if absent 4, or with a budget 64."`
	BudgetSec   float64 `json:"budget_s,omitempty" exclusiveMinimum:"0" maximum:"31536000" doc:"Seconds that all measurements together may take, one after the other, each with its start."`
	DeviceHours float64 `json:"budget_device_hours,omitempty" exclusiveMinimum:"0" maximum:"1000000000" doc:"Device-hours that all measurements together may take."`
	Emit        string  `json:"emit,omitempty" maxLength:"64" example:"megatron" doc:"Add the files that start each plan under this training framework, as launch; plans that it cannot express are left out. Without framework, its training stack is predicted for."`
}

// CalibrateNext has the plans to measure next.
type CalibrateNext struct {
	Plans      []NextPlan `json:"plans" doc:"In the order to measure them. Each is chosen as if those before it were measured."`
	Considered int        `json:"considered" doc:"Number of likely plans that these are chosen from: they fit, are fast, and are not measured yet."`
	Measured   int        `json:"measured" doc:"Number of likely plans that are left out because the store has a measurement of them."`
	Rows       int        `json:"rows" doc:"Number of stored measurements that the choice rests on: the newest of each plan, 512 at most."`
	HalfWidth  float64    `json:"half_width" doc:"Nine in ten of the considered plans have a 90 % interval of ln step time with a half width below this now; 0 = there is no fit."`
	Stopped    string     `json:"stopped,omitempty" doc:"Why there are fewer plans than points."`
	ElapsedS   float64    `json:"elapsed_s" doc:"Time of the search, seconds."`
}

// NextPlan is a plan to measure.
type NextPlan struct {
	campaign.NextPoint
	Devices     int           `json:"devices"`
	GlobalBatch int           `json:"global_batch" doc:"Samples per step."`
	Launch      *query.Launch `json:"launch,omitempty"`
}

// Choose answers in. Stored measurements are those of d, which a answers from.
func Choose(ctx context.Context, a *answer.Answerer, d *query.Resolver, in *CalibrateNextRequest) (CalibrateNext, error) {
	start := time.Now()
	var out CalibrateNext
	likely, err := in.likely(ctx, a)
	if err != nil {
		return out, err
	}
	rows, err := in.stored(ctx, d, likely[0].Key())
	if err != nil {
		return out, err
	}
	open := slices.DeleteFunc(slices.Clone(likely), func(c spec.Config) bool { return measured(rows, &c) })
	out = CalibrateNext{Plans: []NextPlan{}, Considered: len(open), Measured: len(likely) - len(open), Rows: len(rows)}
	if len(open) == 0 {
		out.Stopped = fmt.Sprintf("all %s are measured", spec.Count(len(likely), "likely plan"))
		out.ElapsedS = time.Since(start).Seconds()
		return out, nil
	}
	budget := profiler.Budget{Points: in.points(), DeviceHours: in.DeviceHours, Wall: time.Duration(in.BudgetSec * float64(time.Second))}
	state, steps, err := Informative(ctx, open, rows, budget)
	if err != nil {
		return out, err
	}
	out.HalfWidth = state.Models[0].HalfWidth
	for i, p := range campaign.NextPoints(steps) {
		plan := steps[i].Point.Config.Plan
		next := NextPlan{NextPoint: p, Devices: plan.Devices(), GlobalBatch: plan.GlobalBatch()}
		if in.Emit != "" {
			if next.Launch, err = query.NewLaunch(in.Emit, planner.Choice{Config: steps[i].Point.Config, Fits: true}); err != nil {
				return out, err
			}
		}
		out.Plans = append(out.Plans, next)
	}
	if len(out.Plans) < in.points() {
		out.Stopped = "every likely plan is chosen"
		if len(out.Plans) < len(open) {
			out.Stopped = "no further plan fits in the budget"
		}
	}
	out.ElapsedS = time.Since(start).Seconds()
	return out, nil
}

// points is the most plans of the answer.
func (in *CalibrateNextRequest) points() int {
	usual := 4
	if in.BudgetSec > 0 || in.DeviceHours > 0 {
		usual = MaxPoints
	}
	return cmp.Or(in.Points, usual)
}

// A request takes shares searches of all plans for each number of devices, and pointSec seconds of one core for each plan of
// the answer: a fit, and predictions of the considered plans.
const (
	shares   = 3
	pointSec = 25e-3
)

// Cost estimates the seconds that in takes where a search of the plans on all devices takes search.
func (in *CalibrateNextRequest) Cost(search float64) float64 {
	return shares*float64(bits.Len(uint(max(in.Devices, 1))))*search + float64(in.points())*pointSec
}

// likely returns the plans to choose from, at least one.
func (in *CalibrateNextRequest) likely(ctx context.Context, a *answer.Answerer) ([]spec.Config, error) {
	in.Into(&in.Request)
	if err := in.AssumeStackOf(in.Emit); err != nil {
		return nil, err
	}
	in.GlobalBatch = cmp.Or(in.GlobalBatch, UsualBatch*in.Devices)
	r, m, err := a.Resolve(ctx, &in.Request)
	if err == nil {
		err = r.On(&in.Request, in.Devices)
	}
	if err != nil {
		return nil, err
	}
	can, unable := func(spec.Config) bool { return true }, error(nil)
	if in.Emit != "" {
		f, err := launch.Lookup(in.Emit)
		if err != nil {
			return nil, &query.FieldError{Field: "emit", Value: in.Emit, Err: err}
		}
		can = func(c spec.Config) bool {
			_, err := f.Emit(c)
			unable = cmp.Or(unable, err)
			return err == nil
		}
	}
	likely, err := Likely(ctx, m.Planner, r.Request, can)
	if unable != nil && err != nil && ctx.Err() == nil {
		err = &query.FieldError{Field: "emit", Value: in.Emit, NoAnswer: errors.Is(unable, launch.ErrCannotExpress), Err: unable}
	}
	return likely, err
}

// maxRows bounds the measurements that a choice rests on. Each plan of an answer is a fit to them.
const maxRows = 512

// job is what rows of one plan have in common.
type job struct {
	plan    spec.Plan
	seq     int
	devices string
}

func jobOf(c *spec.Config) job { return job{c.Plan.Normal(), c.Seq(), c.Shape.Devices} }

// stored returns the newest measurement of each plan of a key, under any stored name of the model; the newest maxRows.
func (in *CalibrateNextRequest) stored(ctx context.Context, d *query.Resolver, key spec.Key) ([]spec.Measurement, error) {
	if in.Own != nil || in.Device != nil {
		return nil, nil // no measurement applies
	}
	newest := map[job]spec.Measurement{}
	canonical := query.CanonicalKey(key)
	err := d.Read(func(db reader.Store) error {
		f, err := namesOf(ctx, db, canonical)
		if err != nil || len(f.Models) == 0 {
			return err
		}
		for m, err := range db.Query(ctx, f) {
			if err != nil {
				return err
			}
			if query.CanonicalKey(m.Config.Key()) != canonical || m.Config.Alone() {
				continue
			}
			m.Config.Model.Name = key.Model
			if was, ok := newest[jobOf(&m.Config)]; !ok || !m.At.Before(was.At) {
				newest[jobOf(&m.Config)] = m
			}
			if len(newest) >= 2*maxRows {
				_ = newestOf(newest)
			}
		}
		return nil
	})
	return newestOf(newest), err
}

// namesOf selects the rows of a canonical key, by the names that are stored.
func namesOf(ctx context.Context, db reader.Store, canonical spec.Key) (f reader.Filter, err error) {
	tallies, err := db.Summary(ctx)
	for _, t := range tallies {
		if query.CanonicalKey(spec.Key{Model: t.Model, Accelerator: t.Accelerator}) == canonical {
			f.Models, f.Accelerators = append(f.Models, t.Model), append(f.Accelerators, t.Accelerator)
		}
	}
	return f, err
}

// newestOf returns the newest maxRows of rows, newest first, and removes the others.
func newestOf(rows map[job]spec.Measurement) []spec.Measurement {
	var out []spec.Measurement
	for _, m := range rows {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b spec.Measurement) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Config.Plan.String(), b.Config.Plan.String()))
	})
	for i := maxRows; i < len(out); i++ {
		delete(rows, jobOf(&out[i].Config))
	}
	return out[:min(len(out), maxRows)]
}

// measured reports whether one of rows is of the plan of c, under the framework of c if that is known.
func measured(rows []spec.Measurement, c *spec.Config) bool {
	return slices.ContainsFunc(rows, func(m spec.Measurement) bool {
		same := c.Framework == "" || m.Config.Framework == c.Framework
		return same && jobOf(&m.Config) == jobOf(c) && (m.Outcome == spec.OK || m.Outcome == spec.OOM)
	})
}

// Informative returns those of configs that a campaign with a budget would measure first, at most budget.Points, after a fit
// to rows, and its state.
func Informative(ctx context.Context, configs []spec.Config, rows []spec.Measurement, budget profiler.Budget) (profiler.State, []profiler.Step, error) {
	fam, err := family.Lookup(family.Default)
	if err != nil {
		return profiler.State{}, nil, err
	}
	camp := profiler.Campaign{Name: "calibrate", Space: profiler.Space{Measured: true}, Choose: profiler.Adaptive, Budget: budget}
	return profiler.Explain(ctx, camp, profiler.Options{Machine: profiler.Machine{Configs: configs}, Family: fam, Rows: rows, Reuse: true}, budget.Points)
}
