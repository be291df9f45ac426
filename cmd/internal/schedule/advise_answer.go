package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/place"
)

// advice is the JSON of a job of pacer advise.
type advice struct {
	Job         string         `json:"job,omitempty"`
	By          string         `json:"by,omitempty"` // what names model, batch and plan
	Model       string         `json:"model,omitempty"`
	Accelerator string         `json:"accelerator,omitempty"`
	GlobalBatch int            `json:"global_batch,omitempty"`
	Devices     int            `json:"devices,omitempty"`
	Shape       string         `json:"shape,omitempty"`
	Plan        string         `json:"plan,omitempty"`      // "" = the job names none, and the best one is assumed
	Submitted   *query.PlanRow `json:"submitted,omitempty"` // null = the plan is illegal, or none is legal
	Best        *query.PlanRow `json:"best,omitempty"`
	Gain        *float64       `json:"gain,omitempty"` // throughput of best over that of submitted, less 1; null where submitted does not fit
	Least       *query.PlanRow `json:"least,omitempty"`
	Set         bool           `json:"set"`
	Error       string         `json:"error,omitempty"`

	leastShare float64 // speed per device of least, of the highest
}

// adviser answers about jobs of one call.
type adviser struct {
	resolver *query.Resolver
	oracle   *estimates

	accelerator         string // "" = what jobs request
	perNode, maxDevices int    // 0 = by default
	set                 bool
}

// worthwhile is the gain in speed that more devices, or another plan, must have. nearly is the share of the highest
// speed per device that counts as nearly as fast.
const (
	worthwhile = 0.01
	nearly     = 0.95
)

// advise answers about all jobs of a submission.
func advise(ctx context.Context, c *cli.Context, s *submission) (out answered) {
	if len(s.jobs) == 0 {
		return answered{err: errors.New("advise: no job with devices")}
	}
	resolver, err := datadir.Of(c).Resolver()
	if err != nil {
		return answered{err: err}
	}
	oracle, err := newEstimates(c)
	if err != nil {
		return answered{err: err}
	}
	oracle.limit = c.Duration("timeout") / 3
	a := &adviser{resolver, oracle, c.String("accelerator"), c.Int("per-node"), c.Int("max-devices"), c.Bool("set")}
	var failed []error
	for i := range s.jobs {
		j := &s.jobs[i]
		row, err := a.job(ctx, j)
		if err != nil {
			err = fmt.Errorf("advise: %s: %w", j.name, err)
			row.Error = err.Error()
			failed = append(failed, err)
		}
		row.Job = j.name
		out.jobs = append(out.jobs, row)
	}
	out.err, out.submit = errors.Join(failed...), s.submit()
	return out
}

// job answers about one job, and sets its best size.
func (a *adviser) job(ctx context.Context, j *submitted) (out advice, err error) {
	if j.err != nil {
		return out, j.err
	}
	r, by, err := a.request(ctx, j)
	if err != nil {
		return out, err
	}
	out = advice{By: by, Model: r.Model.Name, Accelerator: r.Accelerator.Name, GlobalBatch: r.GlobalBatch, Devices: r.Devices, Shape: query.ShapeText(r.Shape)}
	if r.Plan != nil {
		out.Plan = r.Plan.String()
	}
	at := r
	at.Top = 1
	ranking, err := place.EvenOracle{Oracle: a.oracle}.Rank(ctx, at)
	switch {
	case errors.Is(err, planner.ErrInfeasible):
	case err != nil:
		return out, err
	case len(ranking.Choices) > 0:
		out.Submitted = newRow(ranking.Choices[0])
	}
	best, err := a.sizes(ctx, r, &out)
	if err != nil || !a.set {
		return out, err
	}
	if j.set == nil {
		return out, errors.New("the plan is in the launch command, which is not changed; pacer check shows the changes")
	}
	if out.Set = out.Plan != out.Best.Plan || out.Shape != out.Best.Shape; out.Set {
		err = j.set(best.Config.Shape, best.Config.Plan)
	}
	return out, err
}

func newRow(c planner.Choice) *query.PlanRow {
	row := query.NewPlanRow(c)
	return &row
}

// request returns what a job asks for, and what says so. The launch command counts where pacer schedule would read no model
// or no plan.
func (a *adviser) request(ctx context.Context, j *submitted) (r planner.Request, by string, err error) {
	q := query.Request{Model: j.job.Model.Name, Accelerator: cmp.Or(a.accelerator, j.job.Accelerator), GlobalBatch: j.job.GlobalBatch, Seq: j.job.SeqLen,
		PerNode: a.perNode, Family: a.oracle.family}
	if q.Accelerator == "" {
		return r, "", fail.Usagef("the job does not say which devices it runs on: give --accelerator")
	}
	if j.nodes > 0 && j.job.Devices%j.nodes > 0 {
		return r, "", fmt.Errorf("%d devices on %d nodes, want the same number on each", j.job.Devices, j.nodes)
	}
	if q.PerNode == 0 && j.nodes > 1 {
		q.PerNode = j.job.Devices / j.nodes
	}
	found, by, err := a.resolve(ctx, j, q)
	if per := j.job.Devices / max(j.nodes, 1); err == nil && j.nodes > 0 && per > found.PerNode {
		q.PerNode = per // a larger machine than usual
		found, by, err = a.resolve(ctx, j, q)
	}
	if err != nil {
		return r, "", err
	}
	r = found.Request
	if (j.job.Plan != spec.Plan{}) {
		r.Plan = &j.job.Plan
	}
	if r.GlobalBatch == 0 && r.Plan != nil {
		r.GlobalBatch = r.Plan.GlobalBatch()
	}
	if r.GlobalBatch == 0 {
		return r, "", errors.New("the job has neither a batch nor a plan")
	}
	r.Devices, r.Shape = j.job.Devices, evenShape(j.job.Devices, r.PerNode)
	if j.nodes > 0 {
		r.Shape = spec.NewShape(slices.Repeat([]int{j.job.Devices / j.nodes}, j.nodes)...)
	}
	return r, by, nil
}

// resolve looks up the names of a request, completed by the launch command of the job.
func (a *adviser) resolve(ctx context.Context, j *submitted, q query.Request) (query.Resolved, string, error) {
	if len(j.launch) > 0 && (!j.managed || j.job.Plan == spec.Plan{}) {
		found, format, err := a.resolver.LaunchFile(ctx, query.CheckRequest{Request: q, File: "launch.sh", Text: j.launch, Devices: j.job.Devices})
		switch {
		case err == nil && j.managed:
			return found, j.by + " and its launch command (" + format + ")", nil
		case err == nil:
			return found, "its launch command (" + format + ")", nil
		case !j.managed:
			return found, "", fmt.Errorf("no model in %s, and the launch command is not understood: %w", j.by, err)
		}
	}
	if !j.managed {
		return query.Resolved{}, "", fmt.Errorf("no model in %s", j.by)
	}
	found, err := a.resolver.Resolve(ctx, q)
	return found, j.by, err
}

// evenShape returns the shape of n devices on the fewest nodes with equally many each.
func evenShape(n, perNode int) spec.Shape {
	nodes := 1
	for n%nodes != 0 || n/nodes > max(perNode, 1) {
		nodes++
	}
	return spec.NewShape(slices.Repeat([]int{n / nodes}, nodes)...)
}

// maxSizes bounds the sizes of full nodes that are considered; of more, powers of two are.
const maxSizes = 16

// sizesUpTo returns the numbers of devices to consider: powers of two on a node, full nodes, and those that are given.
func sizesUpTo(most, perNode, submitted int) []int {
	sizes := []int{most, min(submitted, most)}
	for n := 1; n < min(perNode, most); n *= 2 {
		sizes = append(sizes, n)
	}
	for nodes := 1; nodes*perNode <= most; {
		sizes = append(sizes, nodes*perNode)
		if nodes++; most/perNode > maxSizes {
			nodes = 2 * (nodes - 1)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// sizes fills in the best and the least size.
func (a *adviser) sizes(ctx context.Context, r planner.Request, out *advice) (best planner.Choice, err error) {
	most := a.maxDevices
	if most == 0 {
		most = r.Devices
		if !a.set {
			most *= 2
		}
	}
	var fits []planner.Choice
	var none error
	perDevice := 0.0
	for _, n := range sizesUpTo(most, r.PerNode, r.Devices) {
		at := r
		at.Plan, at.Devices, at.Shape = nil, n, evenShape(n, r.PerNode)
		if n == r.Devices {
			at.Shape = r.Shape
		}
		switch c, err := a.oracle.Best(ctx, at); {
		case errors.Is(err, planner.ErrInfeasible):
			none = err
		case err != nil:
			return best, err
		default:
			fits = append(fits, c)
			perDevice = max(perDevice, speed(&c))
			if c.Prediction.Throughput > (1+worthwhile)*best.Prediction.Throughput {
				best = c
			}
		}
	}
	if len(fits) == 0 {
		return best, none
	}
	least := fits[slices.IndexFunc(fits, func(c planner.Choice) bool { return speed(&c) >= nearly*perDevice })]
	if s := out.Submitted; s != nil && s.Fits && s.SamplesPerS > 0 {
		gain := best.Prediction.Throughput/s.SamplesPerS - 1
		out.Gain = &gain
	}
	out.Best, out.Least, out.leastShare = newRow(best), newRow(least), speed(&least)/perDevice
	return best, nil
}

// speed returns the throughput per device.
func speed(c *planner.Choice) float64 {
	return c.Prediction.Throughput / float64(c.Config.Plan.Devices())
}
