package plan

import (
	"strings"
	"testing"
)

func TestLegend(t *testing.T) {
	var out strings.Builder
	PrintLegend(&out, "dp=8,tp=1,pp=1,mb=4,ga=2,zero=2,precision=bf16", "dp=4,tp=2,pp=1,mb=1,ga=16,zero=2,sp=1")
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"dp: replicas", "tp: devices that split each layer", "mb: samples", "zero: ZeRO stage", "sp: sequence"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	for _, not := range []string{"pp:", "precision", "cp:"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is in %q", not, text)
		}
	}
	out.Reset()
	if PrintLegend(&out); out.Len() > 0 {
		t.Errorf("without plans: %q", out.String())
	}
}

func TestTimeUnits(t *testing.T) {
	for days, want := range map[float64]string{0.0991: "2.38 hours", 0.01: "14.4 minutes", 1.49: "1.49 days", 31: "31.0 days"} {
		if got := daysText(days); got != want {
			t.Errorf("%g days: %q, want %q", days, got, want)
		}
	}
	if u := unitOf(0.0991); u.name != "hours" || u.of(1.5) != "36.0" {
		t.Errorf("a day and a half among hours: %s %s", u.of(1.5), u.name)
	}
}
