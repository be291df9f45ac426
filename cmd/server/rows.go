package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Rows is a page of stored measurements.
type Rows struct {
	Rows []Row  `json:"rows" doc:"By model, accelerator, source and identity."`
	Next string `json:"next,omitempty" doc:"The cursor of the next page; absent after the last row."`
}

// Row is a stored measurement with what is known about it.
type Row struct {
	Measurement spec.Measurement  `json:"measurement"`
	Provenance  *store.Provenance `json:"provenance,omitempty" doc:"How it came into the store; absent if an earlier release stored it."`
	Quarantined *store.Mark       `json:"quarantined,omitempty" doc:"Why it is neither fitted nor scored, with user and time; absent if it is not quarantined."`
}

// rowsRequest selects a page of measurements.
type rowsRequest struct {
	Models       []string `query:"model,explode" maxItems:"1000" doc:"Only measurements of these, by any of their names."`
	Accelerators []string `query:"accelerator,explode" maxItems:"1000" doc:"Only measurements on these, by any of their names."`
	Sources      []string `query:"source,explode" maxItems:"1000" doc:"Only measurements from these."`
	Outcomes     []string `query:"outcome,explode" maxItems:"4" enum:"ok,oom,timeout,failed" doc:"Only measurements that ended so."`
	Limit        int      `query:"limit" minimum:"1" maximum:"1000" doc:"Number of rows of a page, 100 if absent. A page of large rows has fewer."`
	Cursor       string   `query:"cursor" maxLength:"4096" doc:"next of the page before; the first page if absent."`
}

// maxPage is the size of the records from which a page is full, bytes.
const maxPage = 2 << 20

// maintenance is the body of a request about the whole store: an object without fields.
type maintenance struct{}

// forgetRequest selects the measurements of a source.
type forgetRequest struct {
	Source string `query:"source" required:"true" minLength:"1" maxLength:"512" doc:"Where the measurements are from, exactly as stored."`
	Reason string `query:"reason" maxLength:"500" doc:"Why; kept with each."`
	DryRun bool   `query:"dry_run" doc:"Count them, and delete nothing."`
}

// Forgotten counts what a request deletes.
type Forgotten struct {
	Rows   int  `json:"rows" doc:"Measurements deleted, or with dry_run those that would be."`
	DryRun bool `json:"dry_run"`
	Refit  bool `json:"refit" doc:"The server will refit the models of these measurements by itself."`
}

func (s *Server) registerRows(api huma.API, m *router) {
	const tag = "measurements"
	register(s, api, m, operation{http.MethodGet, "/v1/measurements/rows", "rows", tag, light, "Stored measurements, page by page",
		"Measurements that are stored from the first page to the last are given once, whatever is stored or deleted meanwhile.", []int{422}}, s.rows)
	m.scopes["POST /v1/store/verify"], m.scopes["POST /v1/store/compact"] = access.ScopeAdmin, access.ScopeAdmin
	register(s, api, m, operation{http.MethodPost, "/v1/store/verify", "verify-store", tag, fit, "Check all files and measurements of the store",
		"As pacer store verify, while the server goes on. Faults are part of the answer. Measurements that arrive while files are read wait.", nil},
		func(ctx context.Context, _ *body[maintenance]) (trust.Verification, error) {
			return trust.Verify(ctx, s.db.DB)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/store/compact", "compact-store", tag, fit, "Give back the disk space of deleted and replaced measurements",
		"As pacer store compact. Questions are answered meanwhile, measurements wait. It needs as much free disk space again as the store has.", []int{507}},
		func(ctx context.Context, _ *body[maintenance]) (trust.Compaction, error) {
			return trust.Compact(context.WithoutCancel(ctx), s.db.DB)
		})
	m.scopes["DELETE /v1/measurements"] = access.ScopeAdmin
	register(s, api, m, operation{http.MethodDelete, "/v1/measurements", "forget", tag, light, "Delete the measurements of a source",
		"As pacer store forget: they are not stored again until pacer store release admits them.", []int{404, 421, 422, 507}}, s.forget)
}

func (s *Server) rows(ctx context.Context, in *rowsRequest) (Rows, error) {
	wrong := badParameter("cursor", in.Cursor, "cursor is not the next of a page: begin without one")
	after, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil {
		return Rows{}, wrong
	}
	if len(after) == 0 {
		after = nil
	}
	f, err := s.resolver.StoredFilter(ctx, store.Filter{Models: in.Models, Accelerators: in.Accelerators, Sources: in.Sources})
	if err != nil {
		return Rows{}, err
	}
	for _, o := range in.Outcomes {
		f.Outcomes = append(f.Outcomes, spec.Outcome(o))
	}
	found, next, err := s.db.Page(ctx, f, after, cmp.Or(in.Limit, 100), maxPage)
	if errors.Is(err, store.ErrPosition) {
		return Rows{}, wrong
	}
	out := Rows{Rows: []Row{}, Next: base64.RawURLEncoding.EncodeToString(next)}
	for _, r := range found {
		out.Rows = append(out.Rows, Row{r.Row, r.Provenance, r.Quarantined})
	}
	return out, err
}

// forget deletes the measurements of a source. A client that disconnects does not stop it.
func (s *Server) forget(ctx context.Context, in *forgetRequest) (Forgotten, error) {
	ctx = context.WithoutCancel(ctx)
	out := Forgotten{DryRun: in.DryRun}
	if err := store.CheckReason(in.Reason); err != nil {
		return out, badParameter("reason", in.Reason, err.Error())
	}
	if !in.DryRun {
		if err := s.mayWrite(); err != nil {
			return out, err
		}
	}
	rows, keys, err := s.forgetRows(ctx, in)
	out.Rows = rows
	switch {
	case rows == 0 && err == nil:
		return out, problem.New(http.StatusNotFound, "", fmt.Sprintf("no measurement is from source %q: /v1/measurements lists the sources", in.Source))
	case rows == 0 || in.DryRun:
		return out, err
	}
	s.o.Log.Info("measurements deleted", "id", requestOf(ctx).id, "client", requestOf(ctx).client(), "source", in.Source, "rows", rows, "reason", in.Reason)
	out.Refit = s.o.Refit > 0
	if err != nil {
		err = fmt.Errorf("%d measurements deleted, then: %w", rows, err)
	}
	err = errors.Join(err, s.dropUnmeasured(ctx, keys))
	s.models.Measured(keys)
	if err = errors.Join(err, s.fits.Mark(keys)); err == nil {
		err = s.acknowledge(ctx)
	}
	return out, err
}

// forgetRows deletes or counts the measurements of a source, a page at a time. Beside an error it returns what was
// deleted until then.
func (s *Server) forgetRows(ctx context.Context, in *forgetRequest) (rows int, keys []spec.Key, err error) {
	for after := []byte(nil); ; {
		found, next, err := s.db.Page(ctx, store.Filter{Sources: []string{in.Source}}, after, 1000, maxPage)
		if err != nil {
			return rows, keys, err
		}
		n := len(found)
		if !in.DryRun {
			if n, err = s.db.Forget(ctx, found, in.Reason); err != nil {
				return rows, keys, err
			}
		}
		rows += n
		for _, r := range found {
			if k := r.Row.Config.Key(); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		if after = next; after == nil {
			return rows, keys, nil
		}
	}
}

// dropUnmeasured removes the fitted models of those keys that no measurement is left of: nothing would refit them.
func (s *Server) dropUnmeasured(ctx context.Context, keys []spec.Key) error {
	tallies, err := s.resolver.Summary(ctx)
	if err != nil {
		return err
	}
	gone := query.CanonicalKeys(keys)
	for _, t := range tallies {
		delete(gone, query.CanonicalKey(spec.Key{Model: t.Model, Accelerator: t.Accelerator}))
	}
	for _, card := range s.resolver.Cards() {
		if gone[query.CanonicalKey(card.Key)] {
			if err := s.resolver.Fitted.Remove(card.Key, card.Family); err != nil {
				return err
			}
		}
	}
	s.renewed(keys)
	return nil
}
