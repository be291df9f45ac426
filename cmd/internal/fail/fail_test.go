package fail_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/planner"
)

// TestCode: each kind of error has its exit code, also wrapped; a code that was given comes before that of
// the wrapped error.
func TestCode(t *testing.T) {
	if got := fail.Code(nil); got != 0 {
		t.Errorf("without an error: %d", got)
	}
	for _, tc := range []struct {
		err  error
		want int
	}{
		{errors.New("disk full"), 1},
		{fail.Usagef("unknown flag"), 2},
		{cli.Exit("unknown flag", 7), 2},
		{&catalog.UnknownError{}, 2},
		{&query.FieldError{Field: "devices"}, 2},
		{&query.FieldError{Field: "devices", NoAnswer: true}, 3},
		{fail.NoAnswerf("no plan fits"), 3},
		{planner.ErrInfeasible, 3},
		{perfmodel.ErrNotCovered, 3},
		{perfmodel.ErrTooFewPoints, 3},
		{measured.ErrNotMeasured, 3},
		{fail.Partialf("2 rows were skipped"), 4},
		{fail.Partialf("stopped: %w", planner.ErrInfeasible), 4},
		{fail.WithCode(fail.Failed, planner.ErrInfeasible), 1},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("plan: %w", tc.err)} {
			if got := fail.Code(err); got != tc.want {
				t.Errorf("%T %v: exit code %d, want %d", tc.err, tc.err, got, tc.want)
			}
		}
	}
}
