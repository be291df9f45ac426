package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// MeasurementsRequest has measurements, stored all or none.
type MeasurementsRequest struct {
	Measurements []MeasurementBody `json:"measurements" minItems:"1" maxItems:"10000"`
}

// Stored counts the measurements of a request, which are on disk.
type Stored struct {
	Rows      int  `json:"rows"`
	Added     int  `json:"added" doc:"New in the store."`
	Updated   int  `json:"updated" doc:"Known, with other figures: replaced."`
	Unchanged int  `json:"unchanged" doc:"Stored already."`
	Forgotten int  `json:"forgotten" doc:"Not stored: pacer store forget deleted them, and pacer store release admits them."`
	Refit     bool `json:"refit" doc:"The server will refit the models of these measurements by itself."`
	Replayed  bool `json:"replayed,omitempty" doc:"This is the answer to an earlier request with the same Idempotency-Key, and nothing was stored now."`
}

// FitRequest selects stored measurements to refit models from.
type FitRequest struct {
	Family       string   `json:"family,omitempty" maxLength:"64" doc:"Kind of performance model; hybrid if absent."`
	Models       []string `json:"models,omitempty" maxItems:"1000" doc:"Only measurements of these, by any of their names."`
	Accelerators []string `json:"accelerators,omitempty" maxItems:"1000" doc:"Only measurements on these, by any of their names."`
	Sources      []string `json:"sources,omitempty" maxItems:"1000" doc:"Only measurements from these."`
	Rows         *int     `json:"rows,omitempty" minimum:"0" maximum:"1000000" doc:"Rows to fit each model on, the others score it; 0 = all, scored by cross-validation. The server's setting if absent."`
}

// FitResponse is the JSON of pacer fit, and the pairs that could not be fitted.
type FitResponse struct {
	query.Fits
	Skipped []string `json:"skipped"`
}

func (s *Server) registerMeasurements(api huma.API, m *router) {
	const tag = "measurements"
	register(s, api, m, operation{http.MethodPost, "/v1/measurements", "post-measurements", tag, light, "Store measurements",
		"Measurements are on disk when the response arrives. Fitted models do not change until they are refitted: by the server, where serve has --refit, or by /v1/fit.", []int{404, 409, 421, 422, 507}},
		s.postMeasurements)
	register(s, api, m, operation{http.MethodPost, "/v1/fit", "fit", tag, fit, "Fit performance models again",
		"As pacer fit. Later requests are answered with the new models.", []int{404, 421, 422, 507}},
		func(ctx context.Context, in *body[FitRequest]) (FitResponse, error) {
			if err := s.mayWrite(); err != nil {
				return FitResponse{}, err
			}
			out, err := s.fit(ctx, &in.Body)
			if err == nil {
				err = s.acknowledge(ctx)
			}
			return out, err
		})
}

// store stores measurements by put and drops what they make out of date.
func (s *Server) store(rows []spec.Measurement, put func(...spec.Measurement) (store.Counts, error)) (out Stored, err error) {
	var shapes shapeBytes
	for i := range rows {
		if err := checkMeasurement(&rows[i]); err != nil {
			return Stored{}, &query.FieldError{Field: fmt.Sprintf("measurements[%d]", i), Err: fmt.Errorf("measurement %d (source %q, origin %q): %w", i, rows[i].Source, rows[i].Origin, err)}
		}
		if err := shapes.add(i, &rows[i]); err != nil {
			return Stored{}, err
		}
	}
	if err := s.db.CheckSpace(); err != nil {
		return Stored{}, err
	}
	keys, changed := keysOf(rows), false
	defer func() { err = errors.Join(err, s.fits.Stored(keys, changed)) }() // also where put panics
	if err := s.fits.Expect(keys); err != nil {
		return Stored{}, err
	}
	n, err := put(rows...)
	for result, count := range map[string]int{"added": n.Added, "updated": n.Updated, "unchanged": n.Unchanged, "forgotten": n.Forgotten} {
		s.metrics.stored.WithLabelValues(result).Add(float64(count))
	}
	if changed = n.Added+n.Updated > 0; changed {
		s.models.Measured(keys)
	}
	return s.stored(n), err
}

func checkMeasurement(m *spec.Measurement) error {
	if err := m.Validate(); err != nil {
		return err
	}
	c := &m.Config
	if err := checkFigures(&c.Model, &c.Accelerator, c.Link, &c.Shape); err != nil {
		return err
	}
	if err := c.Plan.CheckBounds(); err != nil {
		return err
	}
	return rowfile.Check(m)
}

// fit refits models from the measurements that in selects.
func (s *Server) fit(ctx context.Context, in *FitRequest) (FitResponse, error) {
	name, rows := s.o.FitFamily, s.o.FitRows
	if in.Family != "" {
		name = in.Family
	}
	if in.Rows != nil {
		rows = *in.Rows
	}
	fam, err := family.Lookup(name)
	if err != nil {
		return FitResponse{}, &query.FieldError{Field: "family", Value: name, Err: err}
	}
	filter, err := s.resolver.StoredFilter(ctx, store.Filter{Models: in.Models, Accelerators: in.Accelerators, Sources: in.Sources})
	if err != nil {
		return FitResponse{}, err
	}
	out, err := s.fits.fit(ctx, fam, filter, rows, nil)
	if err == nil && len(out.Cards)+len(out.Skipped) == 0 {
		err = &query.FieldError{Field: "models", Value: in.Models, NoAnswer: true, Err: fmt.Errorf("no stored measurement is of models %q on accelerators %q from sources %q; /v1/measurements lists the stored ones", in.Models, in.Accelerators, in.Sources)}
	}
	if err == nil && len(out.Cards) == 0 {
		err = fmt.Errorf("none of %d (model, accelerator) pairs could be fitted: %s: %w", len(out.Skipped), out.Skipped[0], perfmodel.ErrTooFewPoints)
	}
	return out, err
}

// keysOf returns the distinct keys of rows, sorted.
func keysOf(rows []spec.Measurement) []spec.Key {
	var out []spec.Key
	for i := range rows {
		out = append(out, rows[i].Config.Key())
	}
	slices.SortFunc(out, perfmodel.CompareKeys)
	return slices.Compact(out)
}
