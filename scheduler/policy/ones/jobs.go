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

// trackedJob is the state of a job that ONES keeps between decisions.
type trackedJob struct {
	*scheduler.JobState            // in the present snapshot
	sizes               *sizeTable // sizes it can have

	limit          int           // devices it may have at present
	scaledAt       float64       // epochs when limit was set
	epochsAtGrant  float64       // epochs when it got its devices
	trainedAtGrant time.Duration // trained when it got its devices

	epochs        float64       // completed: losses logged, or minutes trained if it logs none
	stepsPerEpoch float64       // 0 = it logs no losses
	logged        int           // number of losses seen
	done          float64       // completed steps
	samples       float64       // processed
	trained       time.Duration // training time
	rate          float64       // predicted samples/s with grant
	grant         *scheduler.Grant
	observedAt    time.Duration // time of the last decision
	records       []record      // after each epoch

	preempted bool    // lost its devices in the last schedule
	left      float64 // remaining samples, 0 = unknown
}

const (
	// youngEpochs is the number of epochs a job trains at a size before its limit grows.
	youngEpochs = 2
	// unloggedEpoch is the training time that counts as an epoch if a job logs no losses.
	unloggedEpoch = time.Minute
)

// young reports whether j has not trained enough epochs for an estimate.
func (j *trackedJob) young() bool { return j.epochs < youngEpochs }

// maxDevices returns the bound on the devices of j by option max-devices-factor.
func (p *ones) maxDevices(j *spec.Job) int { return int(p.maxDevicesFactor * float64(j.Devices)) }

// sizeTable has the sizes that jobs submitted alike can have, by group.
type sizeTable struct {
	groups      []groupSizes
	least       int  // least size in any group
	unpredicted bool // no prediction: the only size is the submitted one
	warning     string
	revision    int // Finder.Revision when it was made
}

// groupSizes has the sizes that jobs can have in a group.
type groupSizes struct {
	fits    []int     // by devices: the largest size that is not larger, 0 = none
	each    []float64 // by size: device-seconds per sample
	configs [][]candidate.Config
}

// fit returns the largest size in a group up to n, 0 if there is none.
func (s *sizeTable) fit(group, n int) int {
	f := s.groups[group].fits
	if len(f) == 0 || n < 0 {
		return 0
	}
	return f[min(n, len(f)-1)]
}

// configs returns the configurations of size n in a group, none if it is not a size. A job
// may hold such a number of devices if another policy granted them, or if the oracle has
// learnt since that it cannot run on them.
func (s *sizeTable) configs(group, n int) []candidate.Config {
	if all := s.groups[group].configs; n < len(all) {
		return all[n]
	}
	return nil
}

// rate returns the samples/s of size n in a group.
func (s *sizeTable) rate(group, n int) float64 { return float64(n) / s.groups[group].each[n] }

// sizesOf returns the sizes of j.
func (p *ones) sizesOf(ctx context.Context, c spec.Cluster, j *spec.Job) (*sizeTable, error) {
	key := candidate.KeyOf(j)
	revision := p.finder.Revision(c, j)
	if known := p.kinds[key]; known != nil && known.revision == revision {
		return known, nil
	}
	out := &sizeTable{groups: make([]groupSizes, len(c.Groups)), revision: revision}
	for gi := range c.Groups {
		for _, n := range candidate.Sizes(&c.Groups[gi]) {
			if n > p.maxDevices(j) || !j.Accepts(&c.Groups[gi]) {
				break
			}
			configs, err := p.rank(ctx, c, gi, j, spec.Shape{}, n)
			if err != nil {
				return nil, err
			}
			if len(configs) > 0 {
				out.groups[gi].add(n, configs)
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

// asSubmitted adds the submitted size for jobs without any predicted size.
func (p *ones) asSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job, out *sizeTable) error {
	if slices.ContainsFunc(out.groups, func(g groupSizes) bool { return len(g.fits) > 0 }) {
		return nil
	}
	w, err := p.finder.AsSubmitted(ctx, c, j)
	if err != nil {
		return err
	}
	out.warning, out.unpredicted = w.Warning, w.Blind
	for i := range w.Configs {
		o := &w.Configs[i]
		if len(out.groups[o.Group].fits) == 0 {
			out.groups[o.Group].add(o.Devices, []candidate.Config{*o})
		}
	}
	for gi := range c.Groups {
		if g := &c.Groups[gi]; w.Blind && j.Accepts(g) && j.Devices <= g.MostDevices(j.Host) {
			out.groups[gi].add(j.Devices, []candidate.Config{{Group: gi, Plan: candidate.OwnPlan(j), Devices: j.Devices, Shape: spec.Packed(j.Devices, g.Room(j.Host)), Rate: 1}})
		}
	}
	return nil
}

// add appends a size, larger than the others, with its configurations, fastest first.
func (g *groupSizes) add(n int, configs []candidate.Config) {
	before := 0
	if k := len(g.fits); k > 0 {
		before = g.fits[k-1]
	}
	for len(g.fits) < n {
		g.fits, g.each, g.configs = append(g.fits, before), append(g.each, 0), append(g.configs, nil)
	}
	samples := configs[0].Rate * float64(max(configs[0].Plan.GlobalBatch(), 1))
	g.fits, g.each, g.configs = append(g.fits, n), append(g.each, float64(n)/samples), append(g.configs, configs)
}

// rank returns the configurations of j on n devices of a group, or on one shape of them,
// with the batch for n devices.
func (p *ones) rank(ctx context.Context, c spec.Cluster, group int, j *spec.Job, shape spec.Shape, n int) ([]candidate.Config, error) {
	g := &c.Groups[group]
	r := candidate.RequestFor(j, g, n)
	r.Shape = shape
	batch, err := p.batchOn(j, g, n)
	if err != nil || batch == 0 {
		return nil, err
	}
	r.GlobalBatch = batch
	return p.finder.Query(ctx, group, g, r, j.Host, candidate.AnyPlan)
}

// batchOn returns the global batch of j on n devices of g, 0 if there is none:
//
//	n <= s:  b0*n
//	n > s:   floor(b0*s/n) * n
//
//	b0  submitted batch per device
//	s   max(option scale, requested devices)
//
// clamped to the batches that j can train. The learning rate is min(n, s) times that of
// one device, after a linear warm-up of an epoch.
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

// learningRate returns the learning rate on n devices divided by that on one device.
func (p *ones) learningRate(j *spec.Job, n int) float64 {
	return min(float64(n), max(p.scale, float64(j.Devices)))
}

// shapeKey identifies jobs submitted alike on a shape.
type shapeKey struct {
	candidate.SubmittedKey
	group    int
	shape    spec.Shape
	revision int
}

// configFor returns the configuration of j on a shape in a group, nil if it cannot run.
func (p *ones) configFor(ctx context.Context, c spec.Cluster, j *trackedJob, group int, shape spec.Shape) (*candidate.Config, error) {
	n := shape.Total()
	known := j.sizes.configs(group, n)
	for i := range known {
		o := &known[i]
		if o.Shape.Devices == shape.Devices {
			return o, nil
		}
		if j.sizes.unpredicted {
			return &candidate.Config{Group: group, Plan: o.Plan, Shape: shape, Devices: n, Rate: o.Rate}, nil
		}
	}
	key := shapeKey{candidate.KeyOf(j.Job), group, shape, j.sizes.revision}
	if o, ok := p.shapes[key]; ok {
		return o, nil
	}
	configs, err := p.rank(ctx, c, group, j.Job, shape, n)
	if err != nil {
		return nil, err
	}
	var out *candidate.Config
	if len(configs) > 0 {
		out = &configs[0]
	}
	p.shapes[key] = out
	return out, nil
}
