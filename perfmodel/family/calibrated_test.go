package family

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Rows of one site, however good, make nothing surer of another.
func TestCalibratedWidthsOfOtherSites(t *testing.T) {
	rows := hybridRows(t, 60, 1.2, 0.02)
	h := condition(t, rows)
	half := func(p perfmodel.Predictor, c spec.Config) float64 {
		_, lo, hi := secondsOf(t, p, c)
		return math.Log(hi/lo) / 2
	}
	own := rows[3].Config
	if before, after := half(Shipped(), own), half(h, own); after > before/2 {
		t.Errorf("where the rows are from: half width %.3f, %.3f without them", after, before)
	}
	for _, s := range append(Shipped().sites, site{"another", "B"}) {
		c := own
		c.Framework, c.Accelerator.Name = s.framework, s.accelerator
		if before, after := half(Shipped(), c), half(h, c); after < before {
			t.Errorf("%s on %s: half width %.3f with rows of another site, %.3f without them", s.framework, s.accelerator, after, before)
		}
	}
}

func TestWidthsRefused(t *testing.T) {
	for _, bad := range []string{`{"cov":[[1]]}`, `{"cov":[[0,0,0,0,0,0],[0],[0],[0],[0],[0]]}`, `{"scale":-1}`, `{"floor":1e9}`} {
		var w widths
		if err := json.Unmarshal([]byte(bad), &w); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
