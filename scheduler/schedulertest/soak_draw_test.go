package schedulertest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// pairs draws the models that can share devices, and whether their jobs do.
func (s *soak) pairs(d draws) {
	s.keeps = map[string]float64{}
	for _, pair := range []string{"aa", "ab", "ac", "bb", "bc", "cc"} {
		if a, b := pair[:1], pair[1:]; s.world != nil && d.chance(0.7) {
			s.keeps[a+b], s.keeps[b+a] = d.between(0.1, 1), d.between(0.1, 1)
			s.world.Pair(a, b, s.keeps[a+b], s.keeps[b+a])
		}
	}
	if s.couples = s.world != nil && d.chance(0.5); s.couples {
		s.policy = policy.Spec{Name: one(d, "fifo", "fifo-backfill")}
		s.facts = append(s.facts, fmt.Sprintf("random pairs %v", s.keeps))
	}
}

// draws is the random source of a case.
type draws struct{ *rand.Rand }

func (d draws) chance(p float64) bool             { return d.Float64() < p }
func (d draws) between(lo, hi float64) float64    { return lo + d.Float64()*(hi-lo) }
func (d draws) time(lo, hi float64) time.Duration { return time.Duration(d.between(lo, hi) * 1e9) }
func one[T any](d draws, of ...T) T               { return of[d.IntN(len(of))] }

func (s *soak) cluster(d draws) {
	for i := range 1 + d.IntN(2) {
		s.config.Cluster.Groups = append(s.config.Cluster.Groups, spec.NodeGroup{
			Count: 1 + d.IntN(5), Devices: one(d, 1, 2, 4, 8), Accelerator: spec.Accelerator{Name: string(rune('x' + i))},
			Racks: one(d, spec.Racks{}, spec.Racks{Nodes: 2, Bps: 1e9}), CPUs: one(d, 0, 3, 8, 96), HostBytes: one(d, 0, 1<<35, 1<<40+1.0),
		})
	}
}

var soakModels = []string{"a", "b", "c"}

// drawWorld draws speeds of models on powers of two of devices, on the fewest nodes and
// sometimes on twice as many.
func (s *soak) drawWorld(d draws) {
	s.world, s.rates = &schedulertest.World{}, map[rateKey]float64{}
	add := func(model, accelerator string, shape spec.Shape, rate float64) {
		plan := schedulertest.OnePlan(shape.Total())
		s.world.Add(model, accelerator, plan, shape, rate)
		s.rates[rateKey{model, accelerator, plan.String(), shape.Devices}] = rate
	}
	for _, model := range soakModels {
		for _, g := range s.config.Cluster.Groups {
			for n := 1; n <= g.Count*g.Devices; n *= 2 {
				if n > 1 && d.chance(0.4) {
					continue
				}
				rate := d.between(0.1, 10)
				add(model, g.Accelerator.Name, spec.Packed(n, g.Devices), rate)
				if half := n / 2; half > 0 && half <= g.Devices && g.Count > 1 && spec.Packed(n, g.Devices) != spec.NewShape(half, half) && d.chance(0.5) {
					add(model, g.Accelerator.Name, spec.NewShape(half, half), rate*d.between(0.2, 1))
				}
			}
		}
	}
}

func (s *soak) jobs(d draws) {
	for i := range 1 + d.IntN(30) {
		j := spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: one(d, soakModels...)},
			Submit: d.time(0, 4*3600), Guaranteed: d.chance(0.5), Weight: one(d, 0, 1, 4.0),
			Deadline: one(d, 0, 2*time.Hour, 9*time.Hour), Tenant: one(d, "", "t", "u"),
		}
		if d.chance(0.3) {
			j.Submit = j.Submit.Truncate(time.Hour)
		}
		if s.world == nil {
			s.durationJob(d, &j)
		} else {
			s.worldJob(d, &j)
		}
		if d.chance(0.03) {
			j.Accelerator = "none"
		}
		if d.chance(0.03) {
			j.Devices, j.Plan = 1000, schedulertest.OnePlan(1000)
		}
		s.host(d, &j)
		s.config.Jobs = append(s.config.Jobs, j)
	}
}

// host draws the CPUs and memory that some jobs need, sometimes more than any node has.
func (s *soak) host(d draws, j *spec.Job) {
	if d.chance(0.5) {
		return
	}
	most, n := schedulertest.MostHost(s.config.Cluster, j.Devices), 1.0
	if s.world == nil { // any layout is possible, so needs may keep jobs from packing
		n = one(d, 1, 1, 2.0)
	}
	if most.MilliCPUs < spec.Unlimited {
		j.Host.MilliCPUs = int64(n * d.Float64() * float64(most.MilliCPUs))
	}
	if most.Bytes < spec.Unlimited {
		j.Host.Bytes = int64(n * one(d, 0, d.Float64(), 1) * float64(most.Bytes))
	}
	unlimited := slices.ContainsFunc(s.config.Cluster.Groups, func(g spec.NodeGroup) bool { return g.CPUs == 0 })
	if d.chance(0.05) && (s.world == nil || !unlimited) { // a world lacks some jobs in some groups
		j.Host.MilliCPUs = 97000
	}
}

// fits reports whether j fits on the nodes of a group that it accepts.
func (s *soak) fits(j *spec.Job) bool {
	return slices.ContainsFunc(s.config.Cluster.Groups, func(g spec.NodeGroup) bool {
		side := 0 // devices of a node that j can use
		for side < g.Devices && (g.CPUs == 0 || j.Host.MilliCPUs*int64(side+1) <= 1000*int64(g.CPUs)) &&
			(g.HostBytes == 0 || float64(j.Host.Bytes*int64(side+1)) <= g.HostBytes) {
			side++
		}
		return j.Accepts(&g) && j.Devices <= side*g.Count
	})
}

// durationJob draws a job with a duration that fits in some group.
func (s *soak) durationJob(d draws, j *spec.Job) {
	g := one(d, s.config.Cluster.Groups...)
	j.Devices = 1 + d.IntN(g.Count*g.Devices)
	j.Duration = d.time(1, 5*3600)
	if d.chance(0.5) {
		j.Plan = schedulertest.OnePlan(j.Devices)
	}
	if d.chance(0.3) {
		j.Accelerator = g.Accelerator.Name
	}
	s.config.Truth = sim.Durations{}
}

// worldJob draws a job with a configuration of the world.
func (s *soak) worldJob(d draws, j *spec.Job) {
	var can []spec.Config
	for _, c := range s.world.Configs() {
		if c.Model.Name == j.Model.Name {
			can = append(can, c)
		}
	}
	c := one(d, can...)
	j.Devices, j.Plan, j.Steps = c.Shape.Total(), c.Plan, d.between(1, 5000)
	if d.chance(0.2) {
		j.Accelerator = c.Accelerator.Name
	}
	s.config.Truth = s.world.Truth(s.config.Cluster)
}

func (s *soak) parts(d draws) {
	s.policy = policy.Spec{Name: one(d, builtin.Policies.Placing(false)...).Name}
	s.admission = one(d, "", "", "load:1.2", "load:0.5", "quota:4")
	s.placement = one(d, place.All()...).Name
	s.config.Round = one(d, 0, 0, d.time(30, 900).Truncate(time.Second))
}

func (s *soak) drawCosts(d draws) {
	s.costs = map[string]sim.ModelCosts{}
	switch d.IntN(3) {
	case 0:
		launch := d.time(0, 120)
		for _, m := range soakModels {
			s.costs[m] = sim.ModelCosts{Launch: launch}
		}
		s.config.Costs = sim.PerStart(func(spec.Job) time.Duration { return launch })
		s.facts = append(s.facts, fmt.Sprintf("starts of %v", launch))
	case 1:
		for _, m := range soakModels {
			s.costs[m] = sim.ModelCosts{Launch: d.time(0, 60), Checkpoint: one(d, 0, d.time(0, 60)), Restore: d.time(0, 60), Reshard: d.time(0, 60)}
		}
		s.config.Costs = &sim.CostTable{Models: s.costs}
		s.facts = append(s.facts, fmt.Sprintf("costs %v", s.costs))
	}
	if d.chance(0.6) {
		s.config.CheckpointEvery = one(d, d.time(60, 3600), 5*time.Minute)
		s.facts = append(s.facts, fmt.Sprintf("checkpoints every %v", s.config.CheckpointEvery))
	}
}

func (s *soak) failures(d draws) {
	switch d.IntN(4) {
	case 0:
	case 1:
		life := sim.Lifetime{Up: d.time(3600, 2*86400), Down: d.time(60, 7200)}
		lives, err := sim.NewLifetimes(s.config.Cluster, s.seed, func(*spec.NodeGroup) sim.Lifetime { return life })
		if err != nil {
			panic(err) // a bug of the draw
		}
		s.config.Failures, s.config.Horizon, s.mayNotEnd = lives, 20*24*time.Hour, true
		s.facts = append(s.facts, fmt.Sprintf("lifetimes %v until %v", life, s.config.Horizon))
	default:
		table := s.outages(d, 6*3600, 0)
		s.config.Failures = table
		s.facts = append(s.facts, fmt.Sprintf("outages %v", table))
	}
}

// outages draws up to three outages of each node with a notice, first ones within so many
// seconds. Some are for good.
func (s *soak) outages(d draws, within float64, notice time.Duration) sim.OutageTable {
	table := sim.OutageTable{}
	for node := range s.config.Cluster.Nodes() {
		at := d.time(0, within)
		for range d.IntN(4) {
			if d.chance(0.3) {
				at = at.Truncate(time.Hour) // coincides with other events
			}
			o := sim.Outage{Notice: notice, Down: at, Up: at + d.time(1, 3*3600)}
			if d.chance(0.1) {
				o.Up, s.mayNotEnd = 1<<62, true
			}
			table[node] = append(table[node], o)
			if o.Up == 1<<62 {
				break
			}
			at = o.Up + one(d, 0, d.time(0, 8*3600))
		}
	}
	for node, list := range table { // truncation may have moved an outage before the end of the previous one
		for i := 1; i < len(list); i++ {
			list[i].Down = max(list[i].Down, list[i-1].Up)
			list[i].Up = max(list[i].Up, list[i].Down+1)
		}
		table[node] = list
	}
	return table
}

// planned draws maintenance windows and spot capacity.
func (s *soak) planned(d draws) {
	if d.chance(0.3) {
		s.windows = s.outages(d, 4*3600, sim.Planned)
		s.config.Maintenance = s.windows
		s.facts = append(s.facts, fmt.Sprintf("maintenance %v", s.windows))
	}
	if d.chance(0.3) {
		s.spot = s.outages(d, 4*3600, one(d, 0, d.time(1, 120), 2*time.Minute))
		s.config.Spot = s.spot
		s.facts = append(s.facts, fmt.Sprintf("spot %v", s.spot))
	}
}

// away reports whether a node is planned to be down, and whether outages begin then in which a
// job with a checkpoint that takes write keeps or loses its progress.
func (s *soak) away(node int, at, write time.Duration) (away, keeps, loses bool) {
	failures, _ := s.config.Failures.(sim.OutageTable)
	for _, plan := range []sim.OutageTable{failures, s.windows, s.spot} {
		for _, o := range plan[node] {
			away = away || o.Down <= at && at < o.Up
			saves := o.Notice > 0 && o.Notice >= write
			keeps, loses = keeps || o.Down == at && saves, loses || o.Down == at && !saves
		}
	}
	return away, keeps, loses
}
