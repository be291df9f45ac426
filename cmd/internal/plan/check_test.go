package plan

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// TestNoChange: where no single change helps, a command to copy searches for several.
func TestNoChange(t *testing.T) {
	const search = " --to 'My H100' searches for the best plan of several changes, with its diff."
	for _, tc := range []struct {
		fits bool
		on   string
		port *query.Port
		want string
	}{
		{true, "My H100", nil, "No single change that fits, and that the file can hold, makes it faster." + search},
		{false, "My H100", nil, "No single change makes the plan fit." + search},
		{false, "h100", nil, "No single change makes the plan fit." + strings.Replace(search, "'My H100'", "h100", 1)},
		{false, "h100", &query.Port{}, "No single change makes the plan fit."},
		{false, "", nil, "No single change makes the plan fit."},
	} {
		var out strings.Builder
		r := &query.Check{Plan: &query.PlanRow{Fits: tc.fits}, Port: tc.port}
		if err := printChanges(&out, r, &query.CheckRequest{Request: query.Request{Accelerator: tc.on}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != tc.want {
			t.Errorf("%+v:\n got %q\nwant %q", tc, got, tc.want)
		}
	}
}
