package query

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestOwnHybrid: windows and state-space mixers have the defaults of Mamba 2.
func TestOwnHybrid(t *testing.T) {
	read := func(counts map[string]int) OwnModel {
		o := OwnModel{Seq: 2048, Counts: counts, MLP: "plain", TiedEmbeddings: true}
		for name := range counts {
			o.Given = append(o.Given, name)
		}
		return o
	}
	o := read(map[string]int{"layers": 64, "hidden": 2560, "vocab": 50288, "ssm-layers": 64})
	m, _, err := o.Model()
	if err != nil || math.Abs(m.Params()/2.7026e9-1) > 0.01 || m.AttentionLayers() != 0 {
		t.Errorf("%+v, %v, want Mamba 2 2.7B", m, err)
	}
	o = read(map[string]int{"layers": 4, "hidden": 64, "heads": 4, "ffn": 256, "vocab": 100, "sliding-window": 128})
	if m, _, err = o.Model(); err != nil || m.WindowLayers != 4 {
		t.Errorf("%+v, %v, want a window in every layer", m, err)
	}
	o = read(map[string]int{"layers": 4, "hidden": 64, "heads": 4, "ffn": 256, "vocab": 100, "ssm-layers": 5})
	if _, _, err = o.Model(); err == nil || !strings.Contains(err.Error(), "ssm_layers=5") {
		t.Errorf("%v, want an error about ssm_layers", err)
	}
}

// TestOwnParams: a count may be lower than that of the layers, which may share weights, but not more than twice as large:
// MFU would exceed 1.
func TestOwnParams(t *testing.T) {
	for params, want := range map[string]string{"7e9": "", "7e7": "", "7e12": "contradicts the layers"} {
		o := OwnModel{Seq: 2048, Counts: map[string]int{"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocab": 32000}, MLP: "gated", Params: params, Given: []string{"params"}}
		for name := range o.Counts {
			o.Given = append(o.Given, name)
		}
		_, _, err := o.Model()
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("params=%s: %v, want %q", params, err, want)
		}
	}
}
