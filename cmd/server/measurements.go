package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// MeasurementsRequest brings measurements, which are all stored or none is.
type MeasurementsRequest struct {
	Measurements []Posted `json:"measurements" minItems:"1" maxItems:"10000"`
}

// Stored says what became of measurements that were sent. They are on disk.
type Stored struct {
	Rows      int  `json:"rows"`
	Added     int  `json:"added" doc:"New in the store."`
	Updated   int  `json:"updated" doc:"Known, with other figures: replaced."`
	Unchanged int  `json:"unchanged" doc:"Stored already."`
	Refit     bool `json:"refit" doc:"Models of what was measured will be fitted again by themselves."`
}

// FitRequest asks for models to be fitted again, of the stored measurements it
// chooses.
type FitRequest struct {
	Family       string   `json:"family,omitempty" maxLength:"64" doc:"Kind of performance model; hybrid if absent."`
	Models       []string `json:"models,omitempty" maxItems:"1000" doc:"Only measurements of these; names as stored."`
	Accelerators []string `json:"accelerators,omitempty" maxItems:"1000" doc:"Only measurements on these; names as stored."`
	Sources      []string `json:"sources,omitempty" maxItems:"1000" doc:"Only measurements from these."`
	Rows         *int     `json:"rows,omitempty" minimum:"0" maximum:"1000000" doc:"Rows to fit each model on, the others score it; 0 = all, scored by cross-validation. The server's setting if absent."`
}

// Fitted is the JSON of pacer fit, with what could not be fitted.
type Fitted struct {
	ask.Fits
	Skipped []string `json:"skipped"`
}

func (s *Server) registerMeasurements(api huma.API, m *router) {
	const tag = "measurements"
	m.first["POST /v1/measurements"] = s.refusePosted
	register(s, api, m, operation{http.MethodPost, "/v1/measurements", "post-measurements", tag, light, "Store measurements",
		"When this answers they are on disk. Models fitted to what was measured answer as before until they are fitted again: some time later by themselves, where the server was told so, or by /v1/fit.", []int{404, 422, 507}},
		func(ctx context.Context, in *body[MeasurementsRequest]) (Stored, error) {
			rows, err := s.measurements(ctx, in.Body.Measurements)
			if err != nil {
				return Stored{}, err
			}
			return s.store(ctx, rows)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/fit", "fit", tag, fit, "Fit performance models again",
		"As pacer fit; from the answer on, questions are answered with the new models.", []int{422}},
		func(ctx context.Context, in *body[FitRequest]) (Fitted, error) { return s.fit(ctx, &in.Body) })
}

// store keeps measurements, from which questions are answered from then on.
func (s *Server) store(ctx context.Context, rows []spec.Measurement) (Stored, error) {
	for i := range rows {
		if err := checkMeasurement(&rows[i]); err != nil {
			return Stored{}, &ask.FieldError{Field: fmt.Sprintf("measurements[%d]", i), Err: fmt.Errorf("measurement %d (source %q, origin %q): %w", i, rows[i].Source, rows[i].Origin, err)}
		}
	}
	// Once begun it is carried through: a client that went away may not have
	// meant half of it.
	n, err := s.db.PutAll(context.WithoutCancel(ctx), rows...)
	for result, count := range map[string]int{"added": n.Added, "updated": n.Updated, "unchanged": n.Unchanged} {
		s.metrics.stored.WithLabelValues(result).Add(float64(count))
	}
	if n.Added+n.Updated > 0 {
		s.known.measured(keysOf(rows))
		s.fits.stale(rows)
	}
	return Stored{Rows: len(rows), Added: n.Added, Updated: n.Updated, Unchanged: n.Unchanged, Refit: s.o.Refit > 0}, err
}

func checkMeasurement(m *spec.Measurement) error {
	if err := m.Validate(); err != nil {
		return err
	}
	c := &m.Config
	if err := checkFigures(&c.Model, &c.Accelerator, c.Link, &c.Shape); err != nil {
		return err
	}
	return c.Plan.CheckBounds()
}

// fit fits what in chooses.
func (s *Server) fit(ctx context.Context, in *FitRequest) (Fitted, error) {
	name, rows := s.o.FitFamily, s.o.FitRows
	if in.Family != "" {
		name = in.Family
	}
	if in.Rows != nil {
		rows = *in.Rows
	}
	fam, err := family.Lookup(name)
	if err != nil {
		return Fitted{}, &ask.FieldError{Field: "family", Value: name, Err: err}
	}
	out, err := s.fits.fit(ctx, fam, store.Filter{Models: in.Models, Accelerators: in.Accelerators, Sources: in.Sources}, rows, nil)
	if err == nil && len(out.Cards)+len(out.Skipped) == 0 {
		err = &ask.FieldError{Field: "models", Value: in.Models, NoAnswer: true, Err: fmt.Errorf("no stored measurement is of models %q on accelerators %q from sources %q; /v1/measurements lists what there is", in.Models, in.Accelerators, in.Sources)}
	}
	if err == nil && len(out.Cards) == 0 {
		err = fmt.Errorf("none of %d (model, accelerator) pairs could be fitted: %s: %w", len(out.Skipped), out.Skipped[0], perfmodel.ErrTooFewPoints)
	}
	return out, err
}

// keysOf returns the keys rows are of, in order.
func keysOf(rows []spec.Measurement) []spec.Key {
	var out []spec.Key
	for i := range rows {
		out = append(out, rows[i].Config.Key())
	}
	slices.SortFunc(out, perfmodel.CompareKeys)
	return slices.Compact(out)
}
