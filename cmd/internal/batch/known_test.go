package batch

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestRowsUnlike: rows that describe a model and rows that only name it are not one model.
func TestRowsUnlike(t *testing.T) {
	row := func(name string, layers int) spec.Measurement {
		m := spec.Measurement{Config: spec.Config{Model: spec.Model{Name: name}, Accelerator: spec.Accelerator{Name: "H100-80GB-SXM", MemBps: 3e12}}}
		if layers > 0 {
			m.Config.Model.Kind, m.Config.Model.Layers, m.Config.Model.Hidden = spec.Decoder, layers, 64
		}
		return m
	}
	mixed := unlike([]spec.Measurement{row("own", 4), row("own", 0), row("named", 0), row("shaped", 4)})
	if len(mixed) != 1 || !mixed["own"] {
		t.Errorf("mixed %v, want own", mixed)
	}
	seen := calibratedTo([]spec.Measurement{row("named", 0), row("shaped", 4)})
	for _, c := range []struct {
		of     spec.Measurement
		refuse bool
	}{{row("named", 0), false}, {row("named", 4), true}, {row("shaped", 4), false}, {row("shaped", 0), true}, {row("other", 4), false}} {
		what, refuse := seen.unknown(&c.of.Config)
		if refuse != c.refuse || refuse && !strings.Contains(what, "give the same in all of them") {
			t.Errorf("%+v: %q, refused %v, want %v", c.of.Config.Model, what, refuse, c.refuse)
		}
	}
	of := row("named", 0).Config
	if what := strange(&of); !strings.Contains(what, `unknown model "named"`) {
		t.Errorf("strange: %q", what)
	}
}
