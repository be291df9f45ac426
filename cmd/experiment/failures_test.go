package experiment

import "testing"

// TestDrawnFailures: failures follow from the seed unless a table lists them.
func TestDrawnFailures(t *testing.T) {
	for _, tc := range []struct {
		settings map[string]string
		want     bool
	}{
		{nil, false},
		{map[string]string{"policy": "fifo"}, false},
		{map[string]string{"failures": "mtbf=24"}, true},
		{map[string]string{"failures": "outages.csv"}, false},
		{map[string]string{"failures": "OUTAGES.CSV"}, false},
		{map[string]string{"failures": "outages.csv", "stragglers": "0.1"}, true},
		{map[string]string{"node-sigma": "0.1"}, true},
	} {
		if got := drawnFailures(tc.settings); got != tc.want {
			t.Errorf("%v: drawn %t, want %t", tc.settings, got, tc.want)
		}
	}
}
