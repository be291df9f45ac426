package query

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// AcceleratorEntry is one device type of pacer ls accelerators.
type AcceleratorEntry struct {
	spec.Accelerator
	Aliases  []string `json:"aliases"`
	Source   string   `json:"source"`
	Measured bool     `json:"measured" doc:"Known from stored measurements alone."`
}

// Accelerators lists the catalog's device types and those that only the store
// knows, by name.
func (r *Resolver) Accelerators(ctx context.Context) (out []AcceleratorEntry, err error) {
	for _, e := range catalog.Accelerators() {
		out = append(out, AcceleratorEntry{e.Accelerator, OrEmpty(e.Aliases), e.Source, false})
	}
	names, err := r.storedOnly(ctx, AcceleratorOf, isCatalogAccelerator)
	if r.lockedOut(err) {
		err = nil
	}
	for _, name := range names {
		m, err := r.firstRow(ctx, reader.Filter{Accelerators: []string{name}})
		if err != nil {
			return nil, err
		}
		out = append(out, AcceleratorEntry{m.Config.Accelerator, []string{}, m.Source, true})
	}
	slices.SortFunc(out, func(a, b AcceleratorEntry) int { return named.Compare(a.Name, b.Name) })
	return out, err
}

// ModelEntry is one network of pacer ls models.
type ModelEntry struct {
	spec.Model
	Params   float64  `json:"params"`
	Active   float64  `json:"active_params"`
	Aliases  []string `json:"aliases"`
	Source   string   `json:"source"`
	Measured bool     `json:"measured" doc:"Known from stored measurements alone."`
	Note     string   `json:"note,omitempty"`
}

// Models lists the catalog's networks and those that only the store knows, by
// name.
func (r *Resolver) Models(ctx context.Context) (out []ModelEntry, err error) {
	for _, e := range catalog.Models() {
		out = append(out, ModelEntry{e.Model, e.Model.Params(), e.Model.ActiveParams(), OrEmpty(e.Aliases), e.Source, false, e.Note})
	}
	names, err := r.storedOnly(ctx, ModelOf, isCatalogModel)
	if r.lockedOut(err) {
		err = nil
	}
	for _, name := range names {
		row, err := r.firstRow(ctx, reader.Filter{Models: []string{name}})
		if err != nil {
			return nil, err
		}
		m := row.Config.Model
		out = append(out, ModelEntry{m, m.Params(), m.ActiveParams(), []string{}, row.Source, true, ""})
	}
	slices.SortFunc(out, func(a, b ModelEntry) int { return named.Compare(a.Name, b.Name) })
	return out, err
}

// OrEmpty returns s, or a slice that JSON writes as [] if s is nil.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
