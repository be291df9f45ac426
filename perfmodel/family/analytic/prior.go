package analytic

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Prior is a distribution of the constants: a Gaussian over the logarithms of params and over the effects of
// the frameworks and sites it was trained on. It is immutable and safe for concurrent use.
type Prior struct {
	dist       bayes.Gaussian // params, then the effects of frameworks, then of sites
	frameworks []string
	Sites      []Site
	Widths     Widths
	Training   Training
	Memory     *memory.Calibration
	Physics    *Physics
}

// Training describes the data of a prior.
type Training struct {
	Rows    int            `json:"rows"`
	Sources map[string]int `json:"sources"` // number of rows of each source
	Hash    string         `json:"hash"`    // of the rows, see perfmodel.HashRows
}

//go:embed prior.json
var priorJSON []byte

// Shipped returns the prior that comes with the program. bench/prior trains it on published measurements. If
// the embedded file does not match the program's parameters, for example before bench/prior writes a new one,
// Shipped returns the untrained prior; a test fails then.
func Shipped() *Prior {
	shipped.Do(func() {
		p, err := ReadPrior(priorJSON)
		if err != nil {
			shipped.prior = Untrained()
			return
		}
		// Package memory ships the same calibration in full precision. The planner uses that one.
		p.Memory = memory.Shipped()
		p.Physics.Memory = p.Memory
		shipped.prior = p
	})
	return shipped.prior
}

var shipped struct {
	sync.Once
	prior *Prior
}

// Untrained returns the prior without training data, with the constants of base.
func Untrained() *Prior {
	mean, sd := make([]float64, len(params)), make([]float64, len(params))
	for i, p := range params {
		sd[i] = p.sd
	}
	return newPrior(bayes.Independent(mean, sd), nil, nil, Widths{Scale: stats.Normal90, RoutedScale: stats.Normal90}, Training{}, memory.Prior())
}

// newPrior computes the physics of a distribution.
func newPrior(g bayes.Gaussian, frameworks []string, sites []Site, w Widths, t Training, mem *memory.Calibration) *Prior {
	p := &Prior{dist: g, frameworks: frameworks, Sites: sites, Widths: w, Training: t, Memory: mem}
	lay := Layout{Frameworks: frameworks, Sites: sites}
	if w.Cov == nil {
		p.Widths = lay.widths(&g, -1, -1, "", launchCompiled)
		p.Widths.Floor, p.Widths.Scale, p.Widths.RoutedScale = rowNoise, w.Scale, w.RoutedScale
	}
	p.Physics = lay.physics(&g, p.Widths, mem)
	return p
}

// sourceRows limits the weight of a source in training, in rows, because its rows share errors.
const sourceRows = 60

// Train fits the constants to rows of any models, accelerators, frameworks and sources, and returns the prior
// and the rows it used. It ignores rows that are not usable or not covered. The prior predicts memory with mem.
// The error wraps perfmodel.ErrTooFewPoints if no row is left.
func Train(ctx context.Context, rows []spec.Measurement, mem *memory.Calibration) (*Prior, []spec.Measurement, []LeftOut, error) {
	c, err := NewCalibration(ctx, rows)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(c.Rows) == 0 {
		return nil, nil, nil, fmt.Errorf("analytic: none of %d rows is usable for training: %w", len(rows), perfmodel.ErrTooFewPoints)
	}
	for i := range c.Rows { // micro-benchmarks of one machine are not those of others with the same type of device
		c.Rows[i].Config.Accelerator.Measured = ""
	}
	none := Untrained()
	c.Arrange()
	sources := map[string]int{}
	for i := range c.Rows {
		sources[c.Rows[i].Source]++
	}
	weight := make([]float64, len(c.Rows))
	for i := range weight {
		weight[i] = min(1, sourceRows/float64(sources[c.Rows[i].Source]))
	}
	mode, err := c.findMode(ctx, extend(&none.dist, &Layout{}, &c.Layout), weight, rowNoise)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("analytic: %w", err)
	}
	post, err := mode.Posterior()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("analytic: %w", err)
	}
	wide := c.widths(&post.Gaussian, -1, -1, "", launchCompiled)
	wide.Floor = rowNoise
	left := c.leftOut(&post)
	wide.Scale, wide.RoutedScale = c.scales(left, &wide)
	hash, err := perfmodel.HashRows(ctx, c.Rows)
	if err != nil {
		return nil, nil, nil, err
	}
	t := Training{Rows: len(c.Rows), Sources: sources, Hash: hash}
	return newPrior(post.Gaussian, c.Frameworks, c.Sites, wide, t, mem), c.Rows, left, nil
}

// DistributionOf returns the distribution of the constants and of the effects in l. CPUs have that before training,
// since the training data has none, and the kernels and links of accelerators say little about them.
//
// Where all sites are of devices with the same micro-benchmarks, the constants that these determine have their spread.
func (p *Prior) DistributionOf(l *Layout) bayes.Gaussian {
	dist := p.distributionOf(l)
	narrowTo(&dist, l.measuredSD())
	return dist
}

func (p *Prior) distributionOf(l *Layout) bayes.Gaussian {
	if len(l.Sites) > 0 && !slices.ContainsFunc(l.Sites, func(s Site) bool { return !s.isCPU() }) {
		return extend(&Untrained().dist, &Layout{}, l)
	}
	own := Layout{Frameworks: p.frameworks, Sites: p.Sites}
	known := own.common(l)
	dist := narrow(&p.dist, &own, &known)
	return extend(&dist, &known, l)
}

// PhysicsAt returns the physics at parameters x in layout l. Sites and frameworks outside l are those of p.
func (p *Prior) PhysicsAt(l *Layout, x []float64) *Physics {
	ph := l.physics(&bayes.Gaussian{Mean: x}, p.Widths, p.Memory)
	for s, k := range p.Physics.sites {
		if ph.sites[s] == nil {
			ph.sites[s] = k
		}
	}
	for f, k := range p.Physics.frameworks {
		if ph.frameworks[f] == nil {
			ph.frameworks[f] = k
		}
	}
	return ph
}

// Params returns, for each constant, the factor on its value before training, its name and the standard
// deviation of its logarithm.
func (p *Prior) Params() []perfmodel.Param {
	var out []perfmodel.Param
	for i := range params {
		out = append(out, perfmodel.Param{Value: math.Exp(p.dist.Mean[i]), Unit: fmt.Sprintf("x %s, +- %.0f %%", params[i].name, 100*math.Sqrt(p.dist.Cov.At(i, i)))})
	}
	return out
}

// priorVersion is the version of the file format.
const priorVersion = 1

// priorRecord is the JSON form of a prior. Belief is the mean, then the lower triangle of the Cholesky factor
// of the covariance, row by row, as 4-byte little-endian floats. The factor is stored because rounding it
// always gives a valid covariance.
type priorRecord struct {
	Version    int                 `json:"version"`
	Params     []string            `json:"params"` // names of the program that wrote it
	Frameworks []string            `json:"frameworks"`
	Sites      [][2]string         `json:"sites"` // framework, accelerator
	Widths     Widths              `json:"widths"`
	Training   Training            `json:"training"`
	Memory     *memory.Calibration `json:"memory"`
	Belief     string              `json:"belief"` // base64
}

// MarshalJSON implements json.Marshaler.
func (p *Prior) MarshalJSON() ([]byte, error) {
	r := priorRecord{Version: priorVersion, Params: ParamNames(), Frameworks: p.frameworks, Widths: p.Widths, Training: p.Training, Memory: p.Memory}
	for _, s := range p.Sites {
		r.Sites = append(r.Sites, [2]string{s.Framework, s.Accelerator})
	}
	var chol mat.Cholesky
	if !chol.Factorize(p.dist.Cov) {
		return nil, errors.New("analytic: the prior's covariance is not positive definite")
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var b []byte
	put := func(v float64) { b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v))) }
	for _, v := range p.dist.Mean {
		put(v)
	}
	for i := range p.dist.Mean {
		for j := range i + 1 {
			put(lower.At(i, j))
		}
	}
	r.Belief = base64.StdEncoding.EncodeToString(b)
	return json.Marshal(r)
}

// ReadPrior reads what MarshalJSON wrote. It returns an error for a prior with other parameters than this
// program's.
func ReadPrior(b []byte) (*Prior, error) {
	var r priorRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("analytic: prior: %w", err)
	}
	if r.Version != priorVersion || r.Memory == nil || !slices.Equal(r.Params, ParamNames()) {
		return nil, fmt.Errorf("analytic: prior of version %d with %d parameters does not match this program: train it again", r.Version, len(r.Params))
	}
	l := Layout{Frameworks: r.Frameworks}
	for _, s := range r.Sites {
		l.Sites = append(l.Sites, Site{s[0], s[1]})
	}
	g, err := readDistribution(r.Belief, l.Size())
	if err != nil {
		return nil, err
	}
	if err := r.Memory.Validate(); err != nil {
		return nil, fmt.Errorf("analytic: prior: %w", err)
	}
	return newPrior(g, l.Frameworks, l.Sites, r.Widths, r.Training, r.Memory), nil
}

func readDistribution(text string, n int) (bayes.Gaussian, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return bayes.Gaussian{}, fmt.Errorf("analytic: prior: field dist: %w", err)
	}
	if len(b) != 4*(n+n*(n+1)/2) {
		return bayes.Gaussian{}, fmt.Errorf("analytic: prior: field belief has %d bytes, want %d parameters and their covariance", len(b), n)
	}
	next := func() float64 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		b = b[4:]
		return v
	}
	mean := make([]float64, n)
	for i := range mean {
		mean[i] = next()
	}
	lower := mat.NewTriDense(n, mat.Lower, nil)
	for i := range n {
		for j := range i + 1 {
			lower.SetTri(i, j, next())
		}
	}
	cov := mat.NewSymDense(n, nil)
	cov.SymOuterK(1, lower)
	for i := range n {
		if !(cov.At(i, i) > 0) || math.IsInf(cov.At(i, i), 0) || math.IsNaN(mean[i]) || math.IsInf(mean[i], 0) {
			return bayes.Gaussian{}, fmt.Errorf("analytic: prior: parameter %d has mean %g and variance %g, want finite numbers and a variance above 0", i, mean[i], cov.At(i, i))
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}, nil
}
