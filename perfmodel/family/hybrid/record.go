package hybrid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// recordVersion is the version of a stored Model.
const recordVersion = 4

// fileRecord is the stored form of a Model: its difference from the prior.
type fileRecord struct {
	Version    int                 `json:"version"`
	Prior      string              `json:"prior"` // Training.Hash of the prior
	Params     []string            `json:"params,omitempty"`
	Frameworks []string            `json:"frameworks,omitempty"`
	Sites      [][2]string         `json:"sites,omitempty"`
	Evidence   []siteEvidence      `json:"evidence,omitempty"`
	Measured   map[string]string   `json:"measured,omitempty"` // see analytic.Layout
	X          []float64           `json:"x,omitempty"`
	Widths     []analytic.Widths   `json:"widths,omitempty"` // of each site
	Scale      float64             `json:"scale,omitempty"`
	ScaleWhole float64             `json:"scale_whole,omitempty"` // 0 = Scale
	Most       float64             `json:"most,omitempty"`
	Kernel     gp.Kernel           `json:"kernel,omitzero"`
	Points     []pointRecord       `json:"points,omitempty"`
	Memory     *memory.Calibration `json:"memory,omitempty"`
	Shapeless  []shapelessRow      `json:"opaque,omitempty"`
	Mixed      []mixtureRecord     `json:"mixed,omitempty"`
}

// siteEvidence says which stacks a site may be.
type siteEvidence struct {
	Site     [2]string           `json:"site"`
	Evidence []analytic.Evidence `json:"evidence"`
}

type pointRecord struct {
	Num [gp.NumDims]float64 `json:"num"`
	Cat [gp.CatDims]string  `json:"cat"`
	E   float64             `json:"e"`
	SD  float64             `json:"sd,omitempty"`
	Z2  float64             `json:"z2"` // see gp.Scatter
	// Alone: the row is of one rank alone.
	Alone bool `json:"alone,omitempty"`
	// Site is the index of the row's site, Load the derivatives of its ln T by the effects of the site.
	Site int           `json:"site"`
	Load analytic.Load `json:"load"`
}

// MarshalBinary implements perfmodel.Fitted. The format is versioned JSON.
func (h *Model) MarshalBinary() ([]byte, error) {
	r := fileRecord{Version: recordVersion, Prior: h.prior.consts.Training.Hash, Shapeless: shapelessRows(h.shapelessRows)}
	if h.base.physics.Memory != h.prior.consts.Memory {
		r.Memory = h.base.physics.Memory
	}
	if m := h.base; m.residual != nil {
		r.Params, r.Frameworks, r.X, r.Scale = analytic.ParamNames(), m.layout.Frameworks, m.x, m.all.scale
		if m.whole != m.all {
			r.ScaleWhole = m.whole.scale
		}
		r.Measured, r.Most = m.layout.Measured, m.most
		r.Kernel = m.residual.Kernel
		for _, s := range m.layout.Sites {
			r.Sites = append(r.Sites, [2]string{s.Framework, s.Accelerator})
			r.Widths = append(r.Widths, m.wide[s])
			if e := m.layout.Evidence[s]; e != nil {
				r.Evidence = append(r.Evidence, siteEvidence{[2]string{s.Framework, s.Accelerator}, e})
			}
		}
		for i, p := range m.residual.At {
			r.Points = append(r.Points, pointRecord{Num: p.Num, Cat: p.Cat, E: m.residual.Off[i], SD: m.residual.ExtraSD[i], Z2: m.all.scatter.Z2[i], Alone: m.ranks[i], Site: m.sites[i], Load: m.loads[i]})
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
	var r fileRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("hybrid: stored parameters: %w", err)
	}
	if r.Version != recordVersion || r.Prior != p.consts.Training.Hash {
		return nil, fmt.Errorf("hybrid: stored parameters of version %d over prior %q do not match this program (version %d, prior %q): fit again",
			r.Version, r.Prior, recordVersion, p.consts.Training.Hash)
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
	return h, h.loadShapeless(r.Shapeless)
}

func (p *Prior) loadCalibrated(r *fileRecord) (*calibrated, error) {
	if len(r.Points) == 0 {
		return p.uncalibrated(), nil
	}
	m := &calibrated{layout: analytic.Layout{Frameworks: r.Frameworks, Measured: r.Measured}, x: r.X, wide: map[analytic.Site]analytic.Widths{}, elsewhere: p.consts.Widths}
	m.all.scale, m.whole.scale, m.most = r.Scale, cmp.Or(r.ScaleWhole, r.Scale), r.Most
	for i, s := range r.Sites {
		m.layout.Sites = append(m.layout.Sites, siteAt(s))
		if i < len(r.Widths) {
			m.wide[siteAt(s)] = r.Widths[i]
		}
	}
	for _, e := range r.Evidence {
		if m.layout.Evidence == nil {
			m.layout.Evidence = map[analytic.Site][]analytic.Evidence{}
		}
		m.layout.Evidence[siteAt(e.Site)] = e.Evidence
	}
	bad := len(m.x) != m.layout.Size() || len(r.Widths) != len(r.Sites) || !(r.Scale > 0 && r.Scale < 1000) || !(r.ScaleWhole >= 0 && r.ScaleWhole < 1000) || !(r.Most >= 1 && r.Most < 1e6)
	for _, v := range m.x {
		bad = bad || !(math.Abs(v) < 50)
	}
	if bad || fmt.Sprint(r.Params) != fmt.Sprint(analytic.ParamNames()) {
		return nil, fmt.Errorf("hybrid: stored parameters, %d values and %d sites, are incomplete: fit again", len(r.X), len(r.Sites))
	}
	var err error
	if m.residual, err = r.residual(); err != nil {
		return nil, err
	}
	var z2 []float64
	for _, q := range r.Points {
		z2, m.ranks = append(z2, q.Z2), append(m.ranks, q.Alone)
		m.loads, m.sites = append(m.loads, q.Load), append(m.sites, q.Site)
	}
	m.setPhysics()
	m.setScatter(z2)
	m.complete(p)
	return m, nil
}

// residual returns the Gaussian process of the record's rows. It returns an error for values that no fit
// produces.
func (r *fileRecord) residual() (*gp.Process, error) {
	const most = 1000
	bad := !r.Kernel.Valid()
	var at []gp.Point
	var e, sd []float64
	for _, q := range r.Points {
		bad = bad || !(math.Abs(q.E) < most) || !(q.SD >= 0 && q.SD < most) || !(q.Z2 >= 0 && q.Z2 < most) || q.Site < 0 || q.Site >= len(r.Sites)
		for _, v := range slices.Concat(q.Num[:], q.Load[:]) {
			bad = bad || !(math.Abs(v) < most)
		}
		at, e, sd = append(at, gp.Point{Num: q.Num, Cat: q.Cat}), append(e, q.E), append(sd, q.SD)
	}
	if !bad {
		if rest, err := gp.NewProcess(at, e, sd, r.Kernel); err == nil {
			return rest, nil
		}
	}
	return nil, fmt.Errorf("hybrid: stored residuals of %d rows are out of range: fit again", len(r.Points))
}

// siteAt returns the site of a stored pair: framework, accelerator.
func siteAt(s [2]string) analytic.Site { return analytic.Site{Framework: s[0], Accelerator: s[1]} }
