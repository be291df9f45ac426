package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
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
	kindOf
	plan        spec.Plan
	devices     int
	accelerator string
}

func (p *ones) kind(j *spec.Job) onesKind {
	return onesKind{kind(j), j.Plan, j.Devices, j.Accelerator}
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
	ways [][]option
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
	revision := p.belief.revision(c, j)
	if known := p.kinds[key]; known != nil && known.revision == revision {
		return known, nil
	}
	out := &onesSizes{groups: make([]onesGroup, len(c.Groups)), revision: revision}
	for gi := range c.Groups {
		for _, n := range sizes(&c.Groups[gi]) {
			if n > p.mostOf(j) || !accepts(j, &c.Groups[gi]) {
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
	w, err := p.belief.asSubmitted(ctx, c, j)
	if err != nil {
		return err
	}
	out.warning, out.blind = w.warning, w.blind
	for i := range w.options {
		o := &w.options[i]
		if len(out.groups[o.group].fits) == 0 {
			out.groups[o.group].add(o.devices, []option{*o})
		}
	}
	for gi := range c.Groups {
		if g := &c.Groups[gi]; w.blind && accepts(j, g) && j.Devices <= g.MostDevices(j.Host) {
			out.groups[gi].add(j.Devices, []option{{group: gi, plan: ownPlan(j), devices: j.Devices, shape: spec.Packed(j.Devices, g.Room(j.Host)), rate: 1}})
		}
	}
	return nil
}

// add adds a size, larger than all there are, with the ways to have it, fastest
// first.
func (g *onesGroup) add(n int, ways []option) {
	before := 0
	if k := len(g.fits); k > 0 {
		before = g.fits[k-1]
	}
	for len(g.fits) < n {
		g.fits, g.each, g.ways = append(g.fits, before), append(g.each, 0), append(g.ways, nil)
	}
	samples := ways[0].rate * float64(max(ways[0].plan.GlobalBatch(), 1))
	g.fits, g.each, g.ways = append(g.fits, n), append(g.each, float64(n)/samples), append(g.ways, ways)
}

// ask asks for the ways to run j on n devices of a group, or on a shape of them,
// with the batch of so many.
func (p *ones) ask(ctx context.Context, c spec.Cluster, group int, j *spec.Job, shape spec.Shape, n int) ([]option, error) {
	g := &c.Groups[group]
	r := request(j, g, n)
	r.Shape = shape
	batch, err := p.batchOn(j, g, n)
	if err != nil || batch == 0 {
		return nil, err
	}
	r.GlobalBatch = batch
	return p.belief.ask(ctx, group, g, r, j.Host, anyPlan)
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
func (p *ones) way(ctx context.Context, c spec.Cluster, j *onesJob, group int, shape spec.Shape) (*option, error) {
	n := shape.Total()
	for i := range j.sizes.groups[group].ways[n] {
		o := &j.sizes.groups[group].ways[n][i]
		if o.shape.Devices == shape.Devices {
			return o, nil
		}
		if j.sizes.blind {
			return &option{group: group, plan: o.plan, shape: shape, devices: n, rate: o.rate}, nil
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
	var out *option
	if len(ways) > 0 {
		out = &ways[0]
	}
	p.shapes[key] = out
	return out, nil
}

// look takes in what happened since the last decision, and returns the jobs inside
// by arrival.
func (p *ones) look(ctx context.Context, s *scheduler.Snapshot) ([]*onesJob, error) {
	for i := range s.Ended {
		p.lookAtEnded(&s.Ended[i])
	}
	groups := s.Free().Group
	var jobs []*onesJob
	for _, state := range s.Jobs() {
		j := p.jobs[state.Order]
		if j == nil {
			j = &onesJob{at: s.Now}
			p.jobs[state.Order] = j
		}
		j.JobState = state
		var err error
		if j.sizes, err = p.sizesOf(ctx, s.Cluster, state.Job); err != nil {
			return nil, err
		}
		j.limit = max(j.limit, j.sizes.least)
		if j.Grant != nil && j.Grant != j.grant {
			if err := p.placed(ctx, s, j, groups[j.Grant.Slots[0].Node]); err != nil {
				return nil, err
			}
		}
		p.advance(ctx, s.Now, j)
		jobs = append(jobs, j)
	}
	p.scaleLimits(s, jobs)
	for _, j := range jobs {
		p.predict(j)
	}
	return jobs, nil
}

// lookAtEnded learns from a job that ended, which since the last look got on as
// before.
func (p *ones) lookAtEnded(state *scheduler.JobState) {
	j := p.jobs[state.Order]
	delete(p.jobs, state.Order)
	if j != nil && len(j.records) > 0 && j.done > 0 && !p.known {
		p.progress.learn(j.records, j.passes()*state.Done/j.done)
	}
}

// passes returns how often j has processed as many samples as there are in an epoch
// at its own batch.
func (j *onesJob) passes() float64 { return j.samples / (j.every * float64(j.Job.Batch())) }

// placed takes in that j was given what it holds at the last look.
func (p *ones) placed(ctx context.Context, s *scheduler.Snapshot, j *onesJob, group int) error {
	j.grant, j.placedAt, j.ranFor, j.preempted = j.Grant, j.epochs, j.trained, false
	o, err := p.way(ctx, s.Cluster, j, group, j.Grant.Shape)
	if err != nil {
		return err
	}
	j.rate = 0
	if o != nil {
		j.rate = o.rate * float64(o.plan.GlobalBatch())
	}
	return nil
}

// advance brings j up to now.
func (p *ones) advance(ctx context.Context, now time.Duration, j *onesJob) {
	if j.Grant == nil {
		j.preempted = j.preempted || j.grant != nil
		j.grant = nil
	} else if took := now - max(j.at, j.Ready); took > 0 {
		j.trained += took
		j.samples += j.rate * took.Seconds()
	}
	j.at, j.done = now, j.Done
	if p.losses != nil {
		if l, ok := p.losses.Log(ctx, j.JobState); ok && l.Every > 0 {
			j.log(&l)
			return
		}
	}
	j.epochs = j.trained.Seconds() / onesUnlogged.Seconds()
}

// log takes in the losses of j.
func (j *onesJob) log(l *scheduler.Losses) {
	j.every, j.epochs = l.Every, j.Done/l.Every
	if n := len(l.Values); n > j.logged && j.samples > 0 {
		j.logged = n
		j.records = append(j.records, recordOf(l, j.Job.Batch(), j.passes()))
	}
}

// scaleLimits sets the limits of all jobs: one that has trained for a while with as
// many devices as it may have may have twice as many. The largest, if it has half of
// all devices n and has trained for longer than the median of jobs, T against Tm,
// may have
//
//	2n / (T/Tm + 1)
//
// of them, rounded up to an even number.
func (p *ones) scaleLimits(s *scheduler.Snapshot, jobs []*onesJob) {
	var largest *onesJob
	var times []time.Duration
	for _, j := range jobs {
		if j.trained > 0 {
			times = append(times, j.trained)
		}
		if j.Grant == nil {
			continue
		}
		n := j.Grant.Devices()
		if largest == nil || n > largest.Grant.Devices() {
			largest = j
		}
		if most := p.mostOf(j.Job); !j.young() && j.epochs-j.scaledAt >= onesYoung && j.limit < most && n >= j.reach() {
			j.limit, j.scaledAt = min(2*j.limit, most, s.Cluster.Devices()), j.epochs
		}
	}
	if largest == nil || 2*largest.Grant.Devices() < s.Cluster.Devices() {
		return
	}
	slices.Sort(times)
	if median := times[len(times)/2:]; len(median) > 0 && largest.trained > median[0] {
		n := int(2 * float64(largest.Grant.Devices()) / (largest.trained.Seconds()/median[0].Seconds() + 1))
		largest.limit = max(n+n%2, largest.sizes.least)
		largest.scaledAt = largest.epochs
	}
}

// reach returns the most devices that j can have in any group within its limit.
func (j *onesJob) reach() (n int) {
	for gi := range j.sizes.groups {
		n = max(n, j.sizes.fit(gi, j.limit))
	}
	return n
}

// predict says how many samples are left of j: as learnt from the jobs that ended, or
// where nothing is logged as many as there were.
func (p *ones) predict(j *onesJob) {
	j.left = 0
	switch {
	case p.known:
		j.left = j.Remaining * float64(max(j.Job.Batch(), 1))
	case j.young():
	case j.every == 0:
		j.left = j.samples
	case len(j.records) > 0:
		belief := p.progress.of(&j.records[len(j.records)-1])
		rho := belief.Mean()
		if p.sample {
			rho = belief.Rand()
		}
		j.left = min(j.samples*(1/(rho+1e-12)-1), math.MaxFloat32)
	}
}
