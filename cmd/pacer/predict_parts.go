package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// storedParts completes accelerators of which a row knows no more than a name
// that the catalog lacks: those the store has measurements of, such as the CPUs
// of this machine. Each name is looked up once.
type storedParts struct {
	c    *cli.Context
	seen map[string]storedPart
}

type storedPart struct {
	spec.Accelerator
	err error
}

// complete replaces a by what is stored of its name, if anything is. An error
// says that the name stands for several, or that the store cannot be read.
func (p *storedParts) complete(a *spec.Accelerator) error {
	if a.Name == "" || !onlyNamedPart(*a) {
		return nil
	}
	found, ok := p.seen[a.Name]
	if !ok {
		found = p.look(*a)
		p.seen[a.Name] = found
	}
	*a = found.Accelerator
	return found.err
}

func (p *storedParts) look(a spec.Accelerator) storedPart {
	d, err := dataDir(p.c).Resolver()
	if err != nil {
		return storedPart{a, err}
	}
	found, _, err := d.FindAccelerator(p.c.Context, a.Name)
	var unknown *catalog.UnknownError
	switch {
	case err == nil:
		return storedPart{found, nil}
	case errors.As(err, &unknown):
		return storedPart{a, nil} // what is said of unknown names is for others
	}
	return storedPart{a, err}
}
