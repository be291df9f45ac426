package batch

import (
	"context"
	"errors"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// storedParts completes accelerators known by name only, which the catalog lacks, from stored
// measurements: for example the CPUs of this machine. Each name is looked up once.
type storedParts struct {
	resolver func() (*query.Resolver, error)
	seen     map[string]storedPart
}

type storedPart struct {
	spec.Accelerator
	err error
}

// complete replaces a by the stored accelerator of its name, if there is one. It returns an
// error if several match or the store cannot be read.
func (p *storedParts) complete(ctx context.Context, a *spec.Accelerator) error {
	if a.Name == "" || !onlyNamedPart(*a) {
		return nil
	}
	found, ok := p.seen[a.Name]
	if !ok {
		found = p.look(ctx, *a)
		p.seen[a.Name] = found
	}
	*a = found.Accelerator
	return found.err
}

func (p *storedParts) look(ctx context.Context, a spec.Accelerator) storedPart {
	d, err := p.resolver()
	if err != nil {
		return storedPart{a, err}
	}
	found, _, err := d.FindAccelerator(ctx, a.Name)
	var unknown *catalog.UnknownError
	switch {
	case err == nil:
		return storedPart{found, nil}
	case errors.As(err, &unknown):
		return storedPart{a, nil} // unknown names are reported elsewhere
	}
	return storedPart{a, err}
}
