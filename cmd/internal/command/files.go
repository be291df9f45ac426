package command

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// Files are the files for results, by the flags that name them; nil for a flag that is not given.
type Files map[string]*console.File

// OpenFiles opens the files that flags name, each another file. The caller calls Discard when it
// is done.
func OpenFiles(c *cli.Context, flags ...string) (Files, error) {
	out := Files{}
	var all []*console.File
	for _, flag := range flags {
		f, err := console.Create(c.String(flag))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: --%s: %w", c.Command.FullName(), flag, err), out.Discard())
		}
		out[flag], all = f, append(all, f)
	}
	if err := console.Distinct(all...); err != nil {
		return nil, errors.Join(fail.Usagef("%s: %w", c.Command.FullName(), err), out.Discard())
	}
	return out, nil
}

// Discard removes the files that are incomplete.
func (f Files) Discard() error {
	var errs []error
	for _, file := range f {
		errs = append(errs, file.Discard())
	}
	return errors.Join(errs...)
}
