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

// TestPrintPort: the plan of the diff is in the table if it is not the best one, and the title has as many plans.
func TestPrintPort(t *testing.T) {
	best, same, held := query.PlanRow{Plan: "dp=8"}, &query.PlanRow{Plan: "dp=4,tp=2"}, &query.PlanRow{Plan: "dp=2,tp=4"}
	for _, tc := range []struct {
		port  query.Port
		title string
		plans int
	}{
		{query.Port{Best: best}, "On H100 the best plan:", 1},
		{query.Port{Best: best, Same: same}, "On H100 the best plan, that of the file:", 2},
		{query.Port{Best: best, Same: same, Held: &best}, "On H100 the best plan, that of the file:", 2},
		{query.Port{Best: best, Same: same, Held: held}, "On H100 the best plan, that of the file, the best that the file can hold:", 3},
	} {
		tc.port.Accelerator = "H100"
		var out strings.Builder
		if err := printPort(&out, &query.Check{Port: &tc.port}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, tc.title) || strings.Count(got, "dp=") != tc.plans {
			t.Errorf("want %q and %d plans:\n%s", tc.title, tc.plans, got)
		}
	}
}

// TestPrintComparison: the MFU of the measured step stands beside the predicted one.
func TestPrintComparison(t *testing.T) {
	var out strings.Builder
	if err := printComparison(&out, &query.Comparison{StepS: 2, Ratio: 2, Quantile: 0.9, MFU: 0.2}); err != nil {
		t.Fatal(err)
	}
	if want := "is 2.00 times the predicted one, an MFU of 20 % where 40 % is predicted; 90 %"; !strings.Contains(out.String(), want) {
		t.Errorf("want %q:\n%s", want, out.String())
	}
}
