package family

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// Versions of what is on disk.
const recordVersion, hybridVersion = 1, 2

// priorRecord is a Prior on disk. Belief is the mean, then the lower triangle of
// the Cholesky factor of the covariance, row by row, 4-byte little-endian
// floats: a factor stays one however it is rounded.
type priorRecord struct {
	Version    int                 `json:"version"`
	Params     []string            `json:"params"` // of the program that wrote it
	Frameworks []string            `json:"frameworks"`
	Sites      [][2]string         `json:"sites"` // framework, accelerator
	Widths     widths              `json:"widths"`
	Seen       *domain             `json:"seen"`
	Training   Training            `json:"training"`
	Memory     *memory.Calibration `json:"memory"`
	Opaque     *opaquePrior        `json:"opaque"`
	Belief     string              `json:"belief"` // base64
}

func paramNames() (out []string) {
	for _, p := range params {
		out = append(out, p.name)
	}
	for _, e := range effects {
		out = append(out, e.name)
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (p *Prior) MarshalJSON() ([]byte, error) {
	r := priorRecord{Version: recordVersion, Params: paramNames(), Frameworks: p.frameworks, Widths: p.wide, Seen: p.seen, Training: p.trained, Memory: p.mem, Opaque: p.opaque}
	for _, s := range p.sites {
		r.Sites = append(r.Sites, [2]string{s.framework, s.accelerator})
	}
	var chol mat.Cholesky
	if !chol.Factorize(p.belief.Cov) {
		return nil, errors.New("hybrid: the prior's covariance is not positive definite")
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var b []byte
	put := func(v float64) { b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v))) }
	for _, v := range p.belief.Mean {
		put(v)
	}
	for i := range p.belief.Mean {
		for j := range i + 1 {
			put(lower.At(i, j))
		}
	}
	r.Belief = base64.StdEncoding.EncodeToString(b)
	return json.Marshal(r)
}

// ReadPrior reads what MarshalJSON wrote. A prior of a program with other
// parameters is refused.
func ReadPrior(b []byte) (*Prior, error) {
	var r priorRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("hybrid: prior: %w", err)
	}
	if r.Version != recordVersion || r.Seen == nil || r.Memory == nil || r.Opaque == nil || fmt.Sprint(r.Params) != fmt.Sprint(paramNames()) {
		return nil, fmt.Errorf("hybrid: prior of version %d with %d parameters is not one of this program: train it again", r.Version, len(r.Params))
	}
	l := layout{frameworks: r.Frameworks}
	for _, s := range r.Sites {
		l.sites = append(l.sites, site{s[0], s[1]})
	}
	g, err := readBelief(r.Belief, l.size())
	if err != nil {
		return nil, err
	}
	if err := r.Memory.Validate(); err != nil {
		return nil, fmt.Errorf("hybrid: prior: %w", err)
	}
	return newPrior(g, l.frameworks, l.sites, r.Widths, r.Training, r.Seen, r.Memory, r.Opaque), nil
}

func readBelief(text string, n int) (bayes.Gaussian, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return bayes.Gaussian{}, fmt.Errorf("hybrid: prior: belief: %w", err)
	}
	if len(b) != 4*(n+n*(n+1)/2) {
		return bayes.Gaussian{}, fmt.Errorf("hybrid: prior: belief of %d bytes is not one of %d parameters", len(b), n)
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
			return bayes.Gaussian{}, fmt.Errorf("hybrid: prior: parameter %d has mean %g and variance %g", i, mean[i], cov.At(i, i))
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}, nil
}

// hybridRecord is a Hybrid on disk: what rows added to the prior.
type hybridRecord struct {
	Version    int                 `json:"version"`
	Prior      string              `json:"prior"` // Training.Hash of it
	Params     []string            `json:"params,omitempty"`
	Frameworks []string            `json:"frameworks,omitempty"`
	Sites      [][2]string         `json:"sites,omitempty"`
	Pace       []float64           `json:"pace,omitempty"` // of each site
	X          []float64           `json:"x,omitempty"`
	Widths     []widths            `json:"widths,omitempty"` // of each site
	Scale      float64             `json:"scale,omitempty"`
	Kernel     kernel              `json:"kernel,omitzero"`
	Points     []pointRecord       `json:"points,omitempty"`
	Memory     *memory.Calibration `json:"memory,omitempty"`
	Opaque     []opaqueRow         `json:"opaque,omitempty"`
	Mixed      []mixtureRecord     `json:"mixed,omitempty"`
}

type pointRecord struct {
	Num [numDims]float64 `json:"num"`
	Cat [catDims]string  `json:"cat"`
	E   float64          `json:"e"`
	SD  float64          `json:"sd,omitempty"`
	Z2  float64          `json:"z2"` // see scatter
}

// MarshalBinary implements perfmodel.Fitted: JSON, versioned.
func (h *Hybrid) MarshalBinary() ([]byte, error) {
	r := hybridRecord{Version: hybridVersion, Prior: h.prior.trained.Hash, Opaque: opaqueRecord(h.shapeless)}
	if h.base.physics.mem != h.prior.mem {
		r.Memory = h.base.physics.mem
	}
	if m := h.base; m.rest != nil {
		r.Params, r.Frameworks, r.X, r.Scale = paramNames(), m.layout.frameworks, m.x, m.scale
		r.Kernel = m.rest.kernel
		for _, s := range m.layout.sites {
			r.Sites = append(r.Sites, [2]string{s.framework, s.accelerator})
			r.Widths = append(r.Widths, m.wide[s])
			r.Pace = append(r.Pace, m.layout.pace[s])
		}
		for i, p := range m.rest.at {
			r.Points = append(r.Points, pointRecord{Num: p.num, Cat: p.cat, E: m.rest.e[i], SD: m.rest.sd[i], Z2: m.scatter.z2[i]})
		}
	}
	for _, key := range sortedKeys(h.mixed) {
		m, err := h.mixed[key].record(key)
		if err != nil {
			return nil, err
		}
		r.Mixed = append(r.Mixed, m)
	}
	return json.Marshal(r)
}

// load implements Family.Load.
func (p *Prior) load(b []byte) (perfmodel.Fitted, error) {
	var r hybridRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("hybrid: stored parameters: %w", err)
	}
	if r.Version != hybridVersion || r.Prior != p.trained.Hash {
		return nil, fmt.Errorf("hybrid: stored parameters of version %d over prior %q are not of this program (version %d, prior %q): fit again",
			r.Version, r.Prior, hybridVersion, p.trained.Hash)
	}
	base, err := p.loadCalibrated(&r)
	if err != nil {
		return nil, err
	}
	h := p.hybrid(base)
	if r.Memory != nil {
		if err := r.Memory.Validate(); err != nil {
			return nil, fmt.Errorf("hybrid: stored parameters: %w", err)
		}
		h.setMemory(r.Memory)
	}
	for _, m := range r.Mixed {
		if h.mixed[m.Key], err = m.load(); err != nil {
			return nil, err
		}
	}
	return h, h.loadOpaque(r.Opaque)
}

func (p *Prior) loadCalibrated(r *hybridRecord) (*calibrated, error) {
	if len(r.Points) == 0 {
		return p.uncalibrated(), nil
	}
	m := &calibrated{layout: layout{frameworks: r.Frameworks, pace: map[site]float64{}}, x: r.X, wide: map[site]widths{}, others: p.wide, scale: r.Scale}
	for i, s := range r.Sites {
		m.layout.sites = append(m.layout.sites, site{s[0], s[1]})
		if i < len(r.Widths) {
			m.wide[site{s[0], s[1]}] = r.Widths[i]
		}
		if i < len(r.Pace) {
			m.layout.pace[site{s[0], s[1]}] = r.Pace[i]
		}
	}
	bad := len(m.x) != m.layout.size() || len(r.Widths) != len(r.Sites) || !(r.Scale > 0 && r.Scale < 1000)
	for _, v := range slices.Concat(r.Pace, m.x) {
		bad = bad || !(math.Abs(v) < 50)
	}
	if bad || fmt.Sprint(r.Params) != fmt.Sprint(paramNames()) {
		return nil, fmt.Errorf("hybrid: stored parameters, %d figures and %d sites, are not whole: fit again", len(r.X), len(r.Sites))
	}
	var err error
	if m.rest, err = r.residual(); err != nil {
		return nil, err
	}
	m.scatter = &scatter{at: m.rest.at}
	for _, q := range r.Points {
		m.scatter.z2 = append(m.scatter.z2, q.Z2)
	}
	m.scatter.average()
	m.complete(p)
	return m, nil
}

// residual returns the process of the record's rows. Figures that no fit has are
// refused: kernels that grow with distance, logarithms of no number.
func (r *hybridRecord) residual() (*residual, error) {
	const most = 1000
	k := r.Kernel
	bad := !(k.SD > 0 && k.SD < most) || !(k.Steep > 0 && k.Steep < most)
	var at []point
	var e, sd []float64
	for _, q := range r.Points {
		bad = bad || !(math.Abs(q.E) < most) || !(q.SD >= 0 && q.SD < most) || !(q.Z2 >= 0 && q.Z2 < most)
		for _, v := range q.Num {
			bad = bad || !(math.Abs(v) < most)
		}
		at, e, sd = append(at, point{num: q.Num, cat: q.Cat}), append(e, q.E), append(sd, q.SD)
	}
	if !bad {
		if rest, ok := withKernel(at, e, sd, k); ok {
			return rest, nil
		}
	}
	return nil, fmt.Errorf("hybrid: stored residuals of %d rows under a kernel of %g and %g are not those of a fit: fit again", len(r.Points), k.SD, k.Steep)
}
