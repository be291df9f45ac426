package hybrid

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/drift"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// followed is a calibration to rows; some may be from before a change of their site.
type followed struct {
	base    *calibrated
	fit     *analytic.Calibration
	current []spec.Measurement // rows since the last change, repeats merged
	repeats []gp.Repeats       // of configurations that were measured several times since then
	changes map[analytic.Site][]change
}

// change is a change of a site, with the physics of the fit that it was found by.
type change struct {
	drift.Change
	physics *analytic.Physics
}

// maxChanges is the largest number of changes of a site that are looked for; maxDated is the number of its latest rows
// among which they are.
const maxChanges, maxDated = 3, 200

// follow calibrates to usable rows. If rows of a site stop agreeing with earlier ones, the earlier ones get additional
// noise, and the calibration is repeated. Without such a change all rows count alike. Rows without a time of measurement
// count as current.
func (p *Prior) follow(ctx context.Context, rows []spec.Measurement) (*followed, error) {
	f := &followed{changes: map[analytic.Site][]change{}}
	rows = withoutCopies(rows)
	for {
		if err := f.merge(ctx, rows); err != nil {
			return nil, err
		}
		base, j, err := p.calibrate(ctx, f.fit, f.repeats)
		if err != nil {
			return nil, fmt.Errorf("hybrid: %w", err)
		}
		f.base = base
		found, err := f.search(ctx, rows, j)
		if err != nil {
			return nil, fmt.Errorf("hybrid: %w", err)
		}
		if !found {
			return f, nil
		}
	}
}

// withoutCopies returns rows without copies of rows with a time of measurement.
func withoutCopies(rows []spec.Measurement) []spec.Measurement {
	type identity struct {
		spec.Config
		at  time.Time
		sec float64
	}
	seen := map[identity]bool{}
	return slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool {
		is := identity{perfmodel.Canonical(m.Config), m.At.UTC().Round(0), m.MedianStepSec()}
		copied := !m.At.IsZero() && seen[is]
		seen[is] = true
		return copied
	})
}

// merge prepares the fit: repeats are merged, those from before a change apart.
func (f *followed) merge(ctx context.Context, rows []spec.Measurement) (err error) {
	var current, old []spec.Measurement
	for _, m := range rows {
		if f.isOld(&m) {
			old = append(old, m)
		} else {
			current = append(current, m)
		}
	}
	f.repeats = repeatsOf(current)
	f.current, old = perfmodel.MergeRepeats(current), perfmodel.MergeRepeats(old)
	if f.fit, err = analytic.NewCalibration(ctx, append(slices.Clip(f.current), old...)); err != nil || len(old) == 0 {
		return err
	}
	if f.fit.Noise == nil {
		f.fit.Noise = make([]float64, len(f.fit.Rows))
	}
	for i := range f.fit.Rows {
		shift, err := f.noise(&f.fit.Rows[i])
		if err != nil {
			return err
		}
		f.fit.Noise[i] = math.Hypot(f.fit.Noise[i], shift)
	}
	return nil
}

// isOld reports whether m is from before a change of its site.
func (f *followed) isOld(m *spec.Measurement) bool {
	return !m.At.IsZero() && m.At.Before(f.since(analytic.SiteOf(&m.Config)))
}

// since returns the time of the last change of a site.
func (f *followed) since(s analytic.Site) time.Time {
	if of := f.changes[s]; len(of) > 0 {
		return of[len(of)-1].Since
	}
	return time.Time{}
}

// noise returns the additional standard deviation of ln T of a row: the shifts by which it is out of date. They are common
// to all old rows, so these together count for no more than one of them for each current row.
func (f *followed) noise(m *spec.Measurement) (float64, error) {
	sd := 0.0
	if m.At.IsZero() {
		return 0, nil
	}
	for _, c := range f.changes[analytic.SiteOf(&m.Config)] {
		if m.At.Before(c.Since) {
			row, err := rowOf(m, c.physics)
			if err != nil {
				return 0, err
			}
			more := max(float64(c.Older)/float64(c.Newer), 1)
			sd = math.Hypot(sd, math.Sqrt(more)*row.Shift(c.Part, c.Log))
		}
	}
	return sd, nil
}

// rowOf returns the time of m and the parts of its predicted step.
func rowOf(m *spec.Measurement, ph *analytic.Physics) (drift.Row, error) {
	parts, err := ph.Explain(&m.Config)
	if err != nil {
		return drift.Row{}, err
	}
	p, total := parts, parts.Total()
	return drift.Row{At: m.At, Share: [drift.Parts]float64{
		drift.Compute: (p.Compute + p.Recompute + p.Pipeline + p.Optimizer) / total,
		drift.Network: (p.TP + p.CP + p.EP + p.DP) / total,
		drift.Launch:  (p.Launch + p.Offload + p.Fixed) / total,
	}}, nil
}

// dated is a row of a search.
type dated struct {
	drift.Row
	at int // index in the joint distribution
}

// search looks for a change at each site among the rows since its last one, and reports whether it found one.
func (f *followed) search(ctx context.Context, rows []spec.Measurement, j *gp.Joint) (found bool, err error) {
	if j == nil {
		return false, nil
	}
	bySite, err := f.dated(rows, j)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(bySite, func(s analytic.Site, of []dated) bool {
		return len(f.changes[s]) == maxChanges || len(of) < drift.LeastRows
	})
	for s, of := range bySite {
		slices.SortFunc(of, func(a, b dated) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.at, b.at), cmp.Compare(a.Error, b.Error))
		})
		of = of[max(len(of)-maxDated, 0):]
		list := make([]drift.Row, len(of))
		for i := range of {
			list[i] = of[i].Row
		}
		c, ok, err := drift.Find(ctx, list, covariances(&j.Process, of), len(bySite))
		if err != nil {
			return false, err
		}
		if ok {
			f.changes[s] = append(f.changes[s], change{c, f.base.physics})
			found = true
		}
	}
	return found, nil
}

// scatters are factors on the standard deviations of noise and of the residual process.
var scatters = [][2]float64{{0.5, 0.5}, {0.7, 0.5}, {1, 0.5}, {1.4, 0.5}, {2, 0.5}, {0.5, 1}, {0.7, 1}, {1, 1}, {1.4, 1}, {2, 1}, {2.8, 1}, {4, 1}}

// covariances returns possible covariances of rows, see scatters.
func covariances(r *gp.Process, rows []dated) (out []func(a, b int) float64) {
	for _, factor := range scatters {
		noise, kernel := factor[0]*r.Kernel.Noise, r.Kernel
		kernel.Spread *= factor[1]
		out = append(out, func(a, b int) float64 {
			i, j := rows[a].at, rows[b].at
			v := r.Trend(i, j)
			if i == j { // an outlier is one in all repeats
				v += kernel.Variance(&r.At[i]) + r.ExtraSD[i]*r.ExtraSD[i]
			} else {
				v += kernel.Covariance(&r.At[i], &r.At[j])
			}
			if a == b {
				v += noise * noise
			}
			return v
		})
	}
	return out
}

// dated returns the rows with a time since the last change of their site, by site.
func (f *followed) dated(rows []spec.Measurement, j *gp.Joint) (map[analytic.Site][]dated, error) {
	at := map[spec.Config]int{}
	for i, row := range j.Rows {
		if !f.isOld(&f.fit.Rows[row]) {
			at[perfmodel.Canonical(f.fit.Rows[row].Config)] = i
		}
	}
	out := map[analytic.Site][]dated{}
	for i := range rows {
		m := &rows[i]
		k, ok := at[perfmodel.Canonical(m.Config)]
		if !ok || m.At.IsZero() || f.isOld(m) {
			continue
		}
		row, err := rowOf(m, f.base.physics)
		if err != nil {
			return nil, err
		}
		row.Error = j.Process.Off[k] + math.Log(m.MedianStepSec()) - f.fit.Y[j.Rows[k]]
		s := analytic.SiteOf(&m.Config)
		out[s] = append(out[s], dated{row, k})
	}
	return out, nil
}

// drifts describes the changes.
func (f *followed) drifts() (out []perfmodel.Drift) {
	for s, of := range f.changes {
		for _, c := range of {
			out = append(out, perfmodel.Drift{Stack: s.Framework, Accelerator: s.Accelerator, Since: c.Since, Part: drift.Names[c.Part],
				Factor: math.Exp(c.Log), Older: c.Older, Newer: c.Newer})
		}
	}
	slices.SortFunc(out, func(a, b perfmodel.Drift) int {
		return cmp.Or(strings.Compare(a.Stack, b.Stack), strings.Compare(a.Accelerator, b.Accelerator), a.Since.Compare(b.Since))
	})
	return out
}
