package measured

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Servers predicts jobs with parameter servers. The speed of a model at one global batch depends only on its
// numbers of replicas (Plan.DP) and parameter servers (Plan.ParamServers). It is immutable and safe for
// concurrent use.
type Servers struct {
	tables map[spec.Key][]*serverTable // by batch
	keys   []spec.Key
}

// numbers is a pair of counts: replicas and parameter servers.
type numbers struct{ replicas, servers int }

// serverTable holds the speeds of one model on one accelerator at one global batch.
type serverTable struct {
	config spec.Config // of one of the measured rows
	batch  int
	speed  map[numbers]float64 // samples/s
	known  map[numbers]bool    // measured pairs; the others are interpolated
}

// NewServers reads the OK rows of synchronous jobs with parameter servers, and averages rows with equal
// configuration. It interpolates speed at every pair of whole numbers inside the convex hull of the measured
// points:
//
//	f(x) = sum_i c_i |x - x_i|
//
//	x    numbers of replicas and servers
//	x_i  a measured point; its speed f(x_i) is in samples/s
//
// These are the linear radial basis functions of Hardy (Multiquadric equations of topography, J. Geophys. Res.
// 76, 1971), which have one solution for any set of points. Pairs with a speed of 0 or less are left out.
//
// The error names a model with all its points on one line.
func NewServers(rows []spec.Measurement) (*Servers, error) {
	s := ListedServers(rows)
	for _, key := range s.keys {
		for _, t := range s.tables[key] {
			if err := t.interpolate(); err != nil {
				return nil, fmt.Errorf("measured: %s, batch %d: %w", key, t.batch, err)
			}
		}
	}
	return s, nil
}

// ListedServers is NewServers without interpolation: it predicts measured pairs only.
func ListedServers(rows []spec.Measurement) *Servers {
	s := &Servers{tables: map[spec.Key][]*serverTable{}}
	counts := map[*serverTable]map[numbers]int{}
	for _, m := range rows {
		if m.Outcome != spec.OK || !(m.MedianStepSec() > 0) || m.Config.Plan.ParamServers < 1 || m.Config.Plan.Async || m.Config.Alone() {
			continue
		}
		t := s.table(m)
		if counts[t] == nil {
			counts[t] = map[numbers]int{}
		}
		at := numbers{m.Config.Plan.Normal().DP, m.Config.Plan.ParamServers}
		counts[t][at]++
		t.speed[at] += (float64(t.batch)/m.MedianStepSec() - t.speed[at]) / float64(counts[t][at])
		t.known[at] = true
	}
	slices.SortFunc(s.keys, perfmodel.CompareKeys)
	return s
}

// table returns the serverTable for the model, accelerator and batch of m, and adds it if it is missing.
func (s *Servers) table(m spec.Measurement) *serverTable {
	batch, err := strconv.Atoi(m.Env[spec.EnvGlobalBatch])
	if err != nil || batch < 1 {
		batch = m.Config.Plan.GlobalBatch()
	}
	key := m.Config.Key()
	for _, t := range s.tables[key] {
		if t.batch == batch {
			return t
		}
	}
	if s.tables[key] == nil {
		s.keys = append(s.keys, key)
	}
	t := &serverTable{config: m.Config, batch: batch, speed: map[numbers]float64{}, known: map[numbers]bool{}}
	s.tables[key] = append(s.tables[key], t)
	return t
}

// Keys returns the keys with measurements, sorted.
func (s *Servers) Keys() []spec.Key { return slices.Clone(s.keys) }

// Allows reports whether Predict has a result for c.
func (s *Servers) Allows(c spec.Config) bool {
	_, at, ok := s.find(c)
	return ok && at.servers > 0
}

// Configs returns the configurations that Allows accepts, ordered by model, accelerator, replicas and servers.
// The slice belongs to the caller.
func (s *Servers) Configs() []spec.Config {
	var out []spec.Config
	for _, key := range s.keys {
		for _, t := range s.tables[key] {
			for _, at := range t.order() {
				c := t.config
				j := spec.Job{GlobalBatch: t.batch, Plan: c.Plan}
				c.Plan, c.Shape = j.ParamServerPlan(at.replicas, at.servers), spec.Shape{}
				out = append(out, c)
			}
		}
	}
	return out
}

func (t *serverTable) order() []numbers {
	return slices.SortedFunc(maps.Keys(t.speed), numbers.compare)
}

func (n numbers) compare(o numbers) int {
	return cmp.Or(cmp.Compare(n.replicas, o.replicas), cmp.Compare(n.servers, o.servers))
}

// find returns the table for c and c's pair in it. The batch of c may exceed the table's by less than one
// sample per replica, the effect of rounding up to equal micro-batches.
func (s *Servers) find(c spec.Config) (*serverTable, numbers, bool) {
	p := c.Plan.Normal()
	at := numbers{p.DP, p.ParamServers}
	if p.Async || p.Devices() != p.DP || p.AccumSteps > 1 {
		return nil, at, false
	}
	for _, t := range s.tables[c.Key()] {
		if over := p.GlobalBatch() - t.batch; over >= 0 && over < p.DP && t.speed[at] > 0 {
			return t, at, true
		}
	}
	return nil, at, false
}

// Predict implements perfmodel.Predictor. For a configuration that Allows refuses, the error wraps
// ErrNotMeasured and perfmodel.ErrNotCovered.
func (s *Servers) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	t, at, ok := s.find(c)
	if !ok || c.Alone() {
		return spec.Prediction{}, fmt.Errorf("measured: %s, plan %s: %s and %s: %w: %w",
			c.Key(), c.Plan, spec.Count(at.replicas, "replica"), spec.Count(at.servers, "parameter server"), ErrNotMeasured, perfmodel.ErrNotCovered)
	}
	by := "interpolated"
	if t.known[at] {
		by = spec.ByTable
	}
	return spec.Prediction{Throughput: float64(c.Plan.GlobalBatch()) * t.speed[at] / float64(t.batch), By: by}, nil
}

// interpolate adds the speeds of points between measured ones.
func (t *serverTable) interpolate() error {
	points := t.order()
	hull := convexHull(points)
	if len(hull) < 3 {
		return errors.New("the measured points lie on one line, want three that do not")
	}
	f, err := radial(points, t.speed)
	if err != nil {
		return err
	}
	low, high := points[0], points[0]
	for _, p := range points {
		low = numbers{min(low.replicas, p.replicas), min(low.servers, p.servers)}
		high = numbers{max(high.replicas, p.replicas), max(high.servers, p.servers)}
	}
	for r := low.replicas; r <= high.replicas; r++ {
		for p := low.servers; p <= high.servers; p++ {
			at := numbers{r, p}
			if v := f(at); !t.known[at] && inside(hull, at) && v > 0 && !math.IsInf(v, 0) {
				t.speed[at] = v
			}
		}
	}
	return nil
}

// radial returns the sum of radial basis functions that passes through all points.
func radial(points []numbers, value map[numbers]float64) (func(numbers) float64, error) {
	n := len(points)
	distances, values := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i, p := range points {
		values.SetVec(i, value[p])
		for k := range i {
			distances.SetSym(i, k, p.distance(points[k]))
		}
	}
	var weights mat.VecDense
	if err := weights.SolveVec(distances, values); err != nil {
		return nil, fmt.Errorf("interpolating between %d points: %w", n, err)
	}
	return func(at numbers) (sum float64) {
		for i, p := range points {
			sum += weights.AtVec(i) * at.distance(p)
		}
		return sum
	}, nil
}

func (n numbers) distance(o numbers) float64 {
	return math.Hypot(float64(n.replicas-o.replicas), float64(n.servers-o.servers))
}

// convexHull returns the corners of the convex hull of points in ascending order,
// counterclockwise (Andrew, Inf. Process. Lett. 9, 1979); fewer than three if they
// lie on one line.
func convexHull(points []numbers) []numbers {
	half := func(points []numbers) (chain []numbers) {
		for _, p := range points {
			for len(chain) > 1 && turn(chain[len(chain)-2], chain[len(chain)-1], p) <= 0 {
				chain = chain[:len(chain)-1]
			}
			chain = append(chain, p)
		}
		return chain[:len(chain)-1]
	}
	if len(points) < 3 {
		return points
	}
	back := slices.Clone(points)
	slices.Reverse(back)
	return append(half(points), half(back)...)
}

// inside reports whether at is within a convex hull or on its border.
func inside(hull []numbers, at numbers) bool {
	for i, p := range hull {
		if turn(p, hull[(i+1)%len(hull)], at) < 0 {
			return false
		}
	}
	return true
}

// turn is above 0 where c lies left of the line from a to b, and 0 on it.
func turn(a, b, c numbers) int {
	return (b.replicas-a.replicas)*(c.servers-a.servers) - (b.servers-a.servers)*(c.replicas-a.replicas)
}
