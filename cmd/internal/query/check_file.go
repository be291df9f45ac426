package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe"
)

// CheckFile answers q. If err is a *FieldError of a field that the file does not have, the returned Check says what was
// understood. If the plan is illegal, Check has Problems, no Plan and err is nil.
func (r *Resolver) CheckFile(ctx context.Context, q CheckRequest) (*Check, error) {
	c, err := r.checker(q)
	if err != nil {
		return nil, err
	}
	if err := c.resolve(ctx); err != nil {
		var field *FieldError
		if errors.As(err, &field) && field.Value == "" {
			c.out.Missing = &MissingField{field.Field, err.Error()}
		}
		return c.out, err
	}
	if c.found.Plan == nil {
		return c.out, nil
	}
	return c.out, c.answer(ctx)
}

// LaunchFile returns the request of the file of q, with its plan, and the format of the file. An illegal plan is an error,
// and a file without a batch: its plan would be a guess.
func (r *Resolver) LaunchFile(ctx context.Context, q CheckRequest) (found Resolved, format string, err error) {
	c, err := r.checker(q)
	if err == nil {
		err = c.resolve(ctx)
	}
	if err != nil {
		return found, "", err
	}
	_, micro := c.file.Number(recipe.MicroBatch)
	if _, global := c.file.Number(recipe.GlobalBatch); !micro && !global {
		return found, "", fmt.Errorf("query: %s: no batch in the arguments of the launch command", q.File)
	}
	if c.found.Plan == nil {
		return found, "", fmt.Errorf("query: %s: %s", q.File, strings.Join(c.out.Problems, "; "))
	}
	return c.found, c.file.Format, nil
}

// checker reads the file of q.
func (r *Resolver) checker(q CheckRequest) (*checker, error) {
	file, err := recipe.Read(q.File, q.Text, recipe.Options{Format: q.Format, Set: q.Set})
	if err != nil {
		return nil, &FieldError{Field: "file", Value: q.File, Err: err}
	}
	c := &checker{r: r, q: q, file: file}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(q.Set)) {
		value := q.Set[name]
		if !recipe.Settable(name) {
			if !strings.Contains(string(q.Text), name) && !strings.HasPrefix(name, "SLURM_") { // Slurm's are read without their names
				unused = append(unused, fmt.Sprintf("%s=%s has no effect: the file has no such variable or field", name, value))
			}
			continue
		}
		if err := file.Set(name, value); err != nil {
			return nil, &FieldError{Field: "set", Value: name + "=" + value, Err: err}
		}
	}
	file.CountBlock()
	c.start()
	c.assume(unused...)
	return c, nil
}
