package accuracy

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// CurveRows are the numbers of rows revealed in a learning curve.
var CurveRows = []int{0, 1, 3, 5, 10, 30, 100}

// restRows is the least number of rows of a source that are scored, pooledRows of those that count for all sources.
const restRows, pooledRows = 10, 20

// CurvePoint is the error on the rest of a source after k of its rows are revealed. The prior is trained without the
// source. Errors are means over the draws, as fractions; SE are their standard errors.
type CurvePoint struct {
	Data    string  `json:"data"`   // directory of the source
	Source  string  `json:"source"` // "all" pools the sources of the directory
	Order   string  `json:"order"`  // of the revealed rows: random, spread (each the farthest from those before) or chosen (each of the largest gain)
	Model   string  `json:"model"`  // hybrid or a rival
	Rows    int     `json:"rows"`   // k
	Draws   int     `json:"draws"`
	Scored  float64 `json:"scored"`  // rows scored in a draw
	Refused float64 `json:"refused"` // rows not predicted in a draw
	// HeldBack is the number of rows in a draw that are neither fitted nor scored: those that the source marks as suspect,
	// and revealed ones that are in doubt.
	HeldBack float64 `json:"held_back"`
	Mean     Spread  `json:"mean"`
	Median   Spread  `json:"median"`
	// Coverage is the share of rows in the 90 % interval, HalfWidth its median half-width in ln of the step time; both are
	// 0 for rivals, which have none.
	Coverage  float64 `json:"coverage"`
	HalfWidth float64 `json:"half_width"`
	Regret    float64 `json:"regret"`
	Choices   float64 `json:"choices"` // that the regret is over, in a draw
}

// Spread is a mean over draws with its standard error.
type Spread struct {
	Value float64 `json:"value"`
	SE    float64 `json:"se"`
}

func spreadOf(v []float64) Spread {
	s := Spread{Value: mean(v)}
	if len(v) > 1 {
		s.SE = stat.StdErr(stat.StdDev(v, nil), float64(len(v)))
	}
	return s
}

// An order arranges the rows of a source: the first k are revealed.
type order struct {
	name  string
	draws int
	// of returns a permutation of siblings; those after the first most rows are in no order.
	of func(ctx context.Context, r *rand.Rand, prior Prior, rows *sourceRows, most int) ([]int, error)
}

// orders are at random, by distance, and by the gain of the family.
var orders = []order{
	{"random", randomDraws, func(_ context.Context, r *rand.Rand, _ Prior, rows *sourceRows, _ int) ([]int, error) {
		return r.Perm(len(rows.groups)), nil
	}},
	{"spread", randomDraws, func(_ context.Context, r *rand.Rand, _ Prior, rows *sourceRows, _ int) ([]int, error) {
		return farthest(featuresOf(rows.first), r.IntN(len(rows.first))), nil
	}},
	{"chosen", 1, func(ctx context.Context, _ *rand.Rand, prior Prior, rows *sourceRows, most int) ([]int, error) {
		return chosen(ctx, prior.Family(), rows, most)
	}},
}

// sourceRows are the rows of a source.
type sourceRows struct {
	all    []spec.Measurement
	groups [][]int       // siblings
	first  []spec.Config // one of each group
}

func newSourceRows(all []spec.Measurement) *sourceRows {
	s := &sourceRows{all: all, groups: siblings(all)}
	for _, g := range s.groups {
		s.first = append(s.first, all[g[0]].Config)
	}
	return s
}

// farthest orders points so that each is the one farthest from those before it.
func farthest(at [][]float64, first int) []int {
	out := []int{first}
	near := spacefill.NewNearest(len(at))
	for last := first; len(out) < len(at); last = out[len(out)-1] {
		near.Visit(func(i int) float64 { return floats.Distance(at[i], at[last], 2) })
		near[last] = -1
		out = append(out, floats.MaxIdx(near))
	}
	return out
}

// CurveOptions say what LearningCurves does. The zero value of every field but Shared works.
type CurveOptions struct {
	Shared string     // directory with data/published, data/field and data/rubick
	Family *Contender // nil = hybrid
	Seed   uint64     // of the draws
	// Done, if set, is called after each draw of a directory's sources.
	Done func(source string, done, of int)

	known *known // of earlier runs; nil = nothing
}

// curveDraw is one draw of one order of one source.
type curveDraw struct {
	dir    string
	source string
	order  order
	draw   int
}

// curveLine identifies a point of a curve.
type curveLine struct {
	source, order, model string
	rows                 int
}

// drawn are the predictions of one draw.
type drawn struct {
	curveLine
	draw        int
	many        bool // the source counts for all sources
	predictions []prediction
	heldBack    int
}

// LearningCurves returns the learning curves of every source with at least 10 rows beside the revealed ones, and of all with
// at least 20. Rows that differ only in the number of micro-batches are revealed and scored together. The family must have
// a prior.
func LearningCurves(ctx context.Context, o CurveOptions) ([]CurvePoint, error) {
	if err := (Options{Shared: o.Shared}).Validate(); err != nil {
		return nil, err
	}
	c := o.Family
	if c == nil {
		hybrid, err := Lookup("hybrid")
		if err != nil {
			return nil, err
		}
		c = &hybrid
	}
	if c.Train == nil {
		return nil, fmt.Errorf("accuracy: no learning curve of family %s, which has no prior that rows could improve: choose hybrid", c.Name)
	}
	b := newBenchWith(ctx, Options{Shared: o.Shared, Seed: o.Seed}, cmp.Or(o.known, &known{}))
	var out []CurvePoint
	for _, dir := range []string{publishedDir, fieldDir} {
		points, err := b.curves(*c, dir, o.Done)
		if err != nil {
			return nil, err
		}
		out = append(out, points...)
	}
	return out, nil
}

// curves returns those of the sources of a directory.
func (b *Bench) curves(c Contender, dir string, done func(string, int, int)) ([]CurvePoint, error) {
	t, err := b.read(dir)
	if err != nil {
		return nil, err
	}
	var work []curveDraw
	for _, s := range t.sources {
		if len(t.usable[s]) <= restRows {
			continue
		}
		for _, order := range orders {
			for d := range order.draws {
				work = append(work, curveDraw{dir, s, order, d})
			}
		}
	}
	parts := make([][]drawn, len(work))
	finished := 0
	err = b.each(len(work), func(i int) (err error) {
		d := &work[i]
		parts[i], err = b.draw(c, d, t.usable[d.source])
		b.mu.Lock()
		defer b.mu.Unlock()
		if finished++; err == nil && done != nil {
			done(dir+"/"+d.source, finished, len(work))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return curvePoints(dir, t.sources, slices.Concat(parts...)), nil
}

// random returns the generator of a draw.
func (d *curveDraw) random(seed uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(d.source + d.order.name))
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(d.draw)))
}

// draw predicts the rest of a source after each number of rows.
func (b *Bench) draw(c Contender, d *curveDraw, rows []spec.Measurement) (out []drawn, err error) {
	prior, err := b.prior(c, d.source)
	if err != nil {
		return nil, err
	}
	of := newSourceRows(rows)
	perm, err := d.order.of(b.ctx, d.random(b.Seed), prior, of, min(slices.Max(CurveRows), len(rows)-restRows))
	if err != nil {
		return nil, err
	}
	before, err := predictAll(b.ctx, prior, targets(rows, sourceOf))
	if err != nil {
		return nil, err
	}
	features := featuresOf(configsOf(rows))
	suspects, err := b.suspects(d.dir, d.source)
	if err != nil {
		return nil, err
	}
	for _, k := range CurveRows {
		if len(rows) < restRows+k || k == 0 && d.draw > 0 {
			continue
		}
		shown, hidden := take(of.groups, perm, k)
		heldBack := suspects
		for _, i := range shown {
			if !perfmodel.Usable(rows[i]) {
				heldBack++
			}
		}
		add := func(model string, predictions []prediction) {
			out = append(out, drawn{curveLine{d.source, d.order.name, model, k}, d.draw, len(rows) >= pooledRows+k, predictions, heldBack})
		}
		predictions, err := b.conditioned(c, d.source, rows, shown, hidden)
		if err != nil {
			return nil, fmt.Errorf("accuracy: %s, %d rows %s, draw %d: %w", d.source, k, d.order.name, d.draw, err)
		}
		add(c.Name, predictions)
		for _, r := range rivals {
			if k == 0 {
				break
			}
			add(r.name, r.predictions(before, features, shown, hidden))
		}
	}
	return out, nil
}

// conditioned predicts hidden rows of a source after the shown ones.
func (b *Bench) conditioned(c Contender, source string, rows []spec.Measurement, shown, hidden []int) ([]prediction, error) {
	p, err := b.informed(b.ctx, c, source, pick(rows, shown))
	if err != nil {
		return nil, err
	}
	return predictAll(b.ctx, p, targets(pick(rows, hidden), sourceOf))
}

// predictions returns those of hidden rows: before times the exponential of the residual.
func (r rival) predictions(before []prediction, features [][]float64, shown, hidden []int) []prediction {
	var at, of [][]float64
	var y []float64
	for _, i := range shown {
		if a := &before[i]; a.err == nil {
			at, y = append(at, features[i]), append(y, math.Log(a.want/a.got))
		}
	}
	for _, i := range hidden {
		of = append(of, features[i])
	}
	moved := make([]float64, len(hidden))
	if len(y) > 0 {
		moved = r.predict(at, y, of)
	}
	out := make([]prediction, len(hidden))
	for k, i := range hidden {
		out[k] = before[i]
		out[k].got *= math.Exp(moved[k])
		out[k].lo, out[k].hi = 0, 0
	}
	return out
}

func pick(rows []spec.Measurement, some []int) []spec.Measurement {
	out := make([]spec.Measurement, len(some))
	for k, i := range some {
		out[k] = rows[i]
	}
	return out
}

func configsOf(rows []spec.Measurement) []spec.Config {
	out := make([]spec.Config, len(rows))
	for i := range rows {
		out[i] = rows[i].Config
	}
	return out
}

// siblings groups rows that differ only in the number of micro-batches.
func siblings(rows []spec.Measurement) [][]int {
	at := map[spec.Config]int{}
	var out [][]int
	for i := range rows {
		c := rows[i].Config
		c.Plan = c.Plan.Normal()
		c.Plan.AccumSteps = 1
		g, ok := at[c]
		if !ok {
			g = len(out)
			at[c], out = g, append(out, nil)
		}
		out[g] = append(out[g], i)
	}
	return out
}

// suspects returns the number of rows of a source that its table marks as unfit for calibration.
func (b *Bench) suspects(dir, source string) (n int, err error) {
	p, err := b.read(dir)
	if err != nil {
		return 0, err
	}
	for i := range p.all {
		if m := &p.all[i]; sourceOf(m) == source && suspect(m) {
			n++
		}
	}
	return n, nil
}

// take returns the rows of the first groups that have k rows together, and the others.
func take(groups [][]int, perm []int, k int) (shown, hidden []int) {
	for _, g := range perm {
		if len(shown) < k {
			shown = append(shown, groups[g]...)
		} else {
			hidden = append(hidden, groups[g]...)
		}
	}
	slices.Sort(shown)
	slices.Sort(hidden)
	return shown, hidden
}
