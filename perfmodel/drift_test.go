package perfmodel_test

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
)

func TestDriftString(t *testing.T) {
	d := perfmodel.Drift{Stack: "Megatron Core", Accelerator: "A100", Since: time.Date(2026, 5, 3, 23, 0, 0, 0, time.UTC), Part: "network", Factor: 1.18, Older: 40, Newer: 13}
	if got, want := d.String(), "drift: since 2026-05-03 the network time of Megatron Core on A100 is 18 % longer (13 rows); 40 older rows count less"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.Stack, d.Factor = "", 0.75
	if got, want := d.String(), "drift: since 2026-05-03 the network time of a stack that is not stated on A100 is 25 % shorter (13 rows); 40 older rows count less"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
