package spec

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 devices", 1: "1 device", 2: "2 devices"} {
		if got := Count(n, "device"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
