package listing

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// The table marks fits that plan does not use, and has no score for a fit without scored rows.
func TestPrintCards(t *testing.T) {
	card := func(model string, held int, mape, unfitted float64) perfmodel.Card {
		return perfmodel.Card{Key: spec.Key{Model: model, Accelerator: "T4"}, Family: "rubick", NFit: 8, NHeldOut: held, NAll: held,
			MAPE: mape, P95APE: 2 * mape, MAPEUnfitted: unfitted, Coverage: 0.875}
	}
	var out strings.Builder
	cards := []perfmodel.Card{card("good", 10, 0.05, 0.5), card("bad", 30, 0.5, 0.25), card("unrivalled", 1, 0.5, 0), card("unscored", 0, 0, 0)}
	if err := printCards(&out, cards, false); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, line := range strings.Split(out.String(), "\n") {
		if name, rest, ok := strings.Cut(line, " "); ok {
			lines[name] += strings.Join(strings.Fields(rest), " ") + "|"
		}
	}
	for name, want := range map[string]string{
		"good":       "T4 8 10 0 5.0 % 10.0 % 88 % 50.0 %|",
		"bad":        "T4 8 30 0 50.0 % 100.0 % 88 % 25.0 %|on T4: does not beat the analytic model, which plan, predict and curve continue to use; --family rubick selects this one|",
		"unrivalled": "T4 8 1 0 50.0 % 100.0 % 88 % -|",
		"unscored":   "T4 8 0 0 - - - -|",
	} {
		if lines[name] != want {
			t.Errorf("%s: %q, want %q", name, lines[name], want)
		}
	}
	if !strings.Contains(out.String(), "  39.0 % over the 41 held-out rows") { // (10·5 + 30·50 + 50) / 41
		t.Errorf("pooled:\n%s", out.String())
	}
}

// TestPooledText: the rows of other models are counted from the fewest to the most of a fit.
func TestPooledText(t *testing.T) {
	for want, pooled := range map[string][]int{
		"": {0, 0}, ", those of each model together with 5 of others": {5, 5}, ", those of each model together with 0 to 7 of others": {3, 7, 0},
	} {
		var cards []perfmodel.Card
		for _, n := range pooled {
			cards = append(cards, perfmodel.Card{NPooled: n})
		}
		if got := pooledText(cards); got != want {
			t.Errorf("%d: %q, want %q", pooled, got, want)
		}
	}
}
