package ones

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// onesJob is what ONES knows of a job.
type onesJob struct {
	*scheduler.JobState            // of the present snapshot
	sizes               *onesSizes // it can have

	limit    int           // devices it may have for now
	scaledAt float64       // epochs done when limit was set
	placedAt float64       // epochs done when it got its devices
	ranFor   time.Duration // trained then

	epochs  float64       // done: losses logged, or minutes trained of a job that logs none
	every   float64       // steps of an epoch, 0 = none are logged
	logged  int           // losses
	done    float64       // steps
	samples float64       // processed
	trained time.Duration // for so long
	rate    float64       // samples/s believed with grant
	grant   *scheduler.Grant
	at      time.Duration // of the last look
	records []onesRecord  // after each epoch

	preempted bool    // lost its devices in the last schedule
	left      float64 // samples, 0 = not known
}

const (
	// onesYoung is how many epochs a job trains at its first size, and at every other
	// before its limit grows.
	onesYoung = 2
	// onesUnlogged is the time of training that counts as an epoch of a job that
	// logs nothing.
	onesUnlogged = time.Minute
)

// young reports whether nothing can be said of j yet.
func (j *onesJob) young() bool { return j.epochs < onesYoung }

// mostOf returns the most devices that j may ever have.
func (p *ones) mostOf(j *spec.Job) int { return int(p.most * float64(j.Devices)) }

// onesKind is what jobs share whose sizes are the same.
type onesKind struct {
	candidate.Kind
	plan        spec.Plan
	devices     int
	accelerator string
}

func (p *ones) kind(j *spec.Job) onesKind {
	return onesKind{candidate.KindOf(j), j.Plan, j.Devices, j.Accelerator}
}

// onesSizes are the sizes jobs of a kind can have, by group.
type onesSizes struct {
	groups   []onesGroup
	least    int  // devices in any group
	blind    bool // nothing is known: the sizes are as submitted
	warning  string
	revision int // belief.revision then
}

// onesGroup is the sizes jobs can have in a group.
type onesGroup struct {
	fits []int     // by devices: the most at or below that a job can have, 0 = none
	each []float64 // by those it can have: device-seconds of a sample
	ways [][]candidate.Config
}

// fit returns the most devices a job can have in a group, up to n.
func (s *onesSizes) fit(group, n int) int {
	f := s.groups[group].fits
	if len(f) == 0 || n < 0 {
		return 0
	}
	return f[min(n, len(f)-1)]
}

// rate returns the samples/s of n devices of a group, a size there is.
func (s *onesSizes) rate(group, n int) float64 { return float64(n) / s.groups[group].each[n] }

// sizesOf returns the sizes of j.
func (p *ones) sizesOf(ctx context.Context, c spec.Cluster, j *spec.Job) (*onesSizes, error) {
	key := p.kind(j)
	revision := p.belief.Revision(c, j)
	if known := p.kinds[key]; known != nil && known.revision == revision {
		return known, nil
	}
	out := &onesSizes{groups: make([]onesGroup, len(c.Groups)), revision: revision}
	for gi := range c.Groups {
		for _, n := range candidate.Sizes(&c.Groups[gi]) {
			if n > p.mostOf(j) || !candidate.Accepts(j, &c.Groups[gi]) {
				break
			}
			ways, err := p.ask(ctx, c, gi, j, spec.Shape{}, n)
			if err != nil {
				return nil, err
			}
			if len(ways) > 0 {
				out.groups[gi].add(n, ways)
			}
		}
	}
	if err := p.asSubmitted(ctx, c, j, out); err != nil {
		return nil, err
	}
	for gi := range out.groups {
		for _, n := range out.groups[gi].fits {
			if n > 0 && (out.least == 0 || n < out.least) {
				out.least = n
			}
		}
	}
	p.kinds[key] = out
	return out, nil
}

// asSubmitted gives jobs of which nothing is known at any size the one they were
// submitted with.
func (p *ones) asSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job, out *onesSizes) error {
	if slices.ContainsFunc(out.groups, func(g onesGroup) bool { return len(g.fits) > 0 }) {
		return nil
	}
	w, err := p.belief.AsSubmitted(ctx, c, j)
	if err != nil {
		return err
	}
	out.warning, out.blind = w.Warning, w.Blind
	for i := range w.Configs {
		o := &w.Configs[i]
		if len(out.groups[o.Group].fits) == 0 {
			out.groups[o.Group].add(o.Devices, []candidate.Config{*o})
		}
	}
	for gi := range c.Groups {
		if g := &c.Groups[gi]; w.Blind && candidate.Accepts(j, g) && j.Devices <= g.MostDevices(j.Host) {
			out.groups[gi].add(j.Devices, []candidate.Config{{Group: gi, Plan: candidate.OwnPlan(j), Devices: j.Devices, Shape: spec.Packed(j.Devices, g.Room(j.Host)), Rate: 1}})
		}
	}
	return nil
}

// add adds a size, larger than all there are, with the ways to have it, fastest
// first.
func (g *onesGroup) add(n int, ways []candidate.Config) {
	before := 0
	if k := len(g.fits); k > 0 {
		before = g.fits[k-1]
	}
	for len(g.fits) < n {
		g.fits, g.each, g.ways = append(g.fits, before), append(g.each, 0), append(g.ways, nil)
	}
	samples := ways[0].Rate * float64(max(ways[0].Plan.GlobalBatch(), 1))
	g.fits, g.each, g.ways = append(g.fits, n), append(g.each, float64(n)/samples), append(g.ways, ways)
}

// ask asks for the ways to run j on n devices of a group, or on a shape of them,
// with the batch of so many.
func (p *ones) ask(ctx context.Context, c spec.Cluster, group int, j *spec.Job, shape spec.Shape, n int) ([]candidate.Config, error) {
	g := &c.Groups[group]
	r := candidate.RequestFor(j, g, n)
	r.Shape = shape
	batch, err := p.batchOn(j, g, n)
	if err != nil || batch == 0 {
		return nil, err
	}
	r.GlobalBatch = batch
	return p.belief.Ask(ctx, group, g, r, j.Host, candidate.AnyPlan)
}

// batchOn returns the global batch of j on n devices of g, 0 where it can train none:
// with b0 the samples a device of what it was submitted with,
//
//	n <= s:  b0*n    else:  floor(b0*s/n) * n    s = max(scale, devices asked for)
//
// between the least and the most that it can train. Its learning rate is as many
// times that of one device, up to s, and goes there along a line in an epoch.
func (p *ones) batchOn(j *spec.Job, g *spec.NodeGroup, n int) (int, error) {
	if p.batcher == nil {
		return j.Batch(), nil
	}
	least, most, err := p.batcher.Batches(j, g)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("policy: ones: %w", err)
	}
	each := float64(j.Batch()) / float64(j.Devices)
	batch := int(each * p.learningRate(j, n))
	if p.learningRate(j, n) < float64(n) {
		batch = batch / n * n
	}
	return min(max(batch, least), most), nil
}

// learningRate returns that of a job on n devices, in terms of that on one.
func (p *ones) learningRate(j *spec.Job, n int) float64 {
	return min(float64(n), max(p.scale, float64(j.Devices)))
}

// onesShape is a kind of job on a shape.
type onesShape struct {
	onesKind
	group    int
	shape    spec.Shape
	revision int
}

// way returns how j runs on a shape in a group, nil where it cannot.
func (p *ones) way(ctx context.Context, c spec.Cluster, j *onesJob, group int, shape spec.Shape) (*candidate.Config, error) {
	n := shape.Total()
	for i := range j.sizes.groups[group].ways[n] {
		o := &j.sizes.groups[group].ways[n][i]
		if o.Shape.Devices == shape.Devices {
			return o, nil
		}
		if j.sizes.blind {
			return &candidate.Config{Group: group, Plan: o.Plan, Shape: shape, Devices: n, Rate: o.Rate}, nil
		}
	}
	key := onesShape{p.kind(j.Job), group, shape, j.sizes.revision}
	if known, ok := p.shapes[key]; ok {
		return known, nil
	}
	ways, err := p.ask(ctx, c, group, j.Job, shape, n)
	if err != nil {
		return nil, err
	}
	var out *candidate.Config
	if len(ways) > 0 {
		out = &ways[0]
	}
	p.shapes[key] = out
	return out, nil
}
