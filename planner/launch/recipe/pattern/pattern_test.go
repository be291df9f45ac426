package pattern

import (
	"reflect"
	"strings"
	"testing"
)

func TestLayout(t *testing.T) {
	for text, want := range map[string]string{"Et*2|(tt|)*2m|L": "Et*2|tt|tt|m|L", "(t|)*3": "t|t|t|", "(t|)*99999999999999999999": "t|", "tt|tt": "tt|tt"} {
		if got := Layout(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestDenseLayers(t *testing.T) {
	for _, c := range []struct {
		text          string
		layers        int
		dense, expert int
		ok            bool
	}{
		{"([0]*3+[1]*58)", 61, 3, 1, true}, {"2", 8, 4, 2, true}, {"([0]*1+[1])*4", 8, 4, 2, true},
		{"([1]*4+[0]*4)", 8, 0, 0, false}, {"([0]*3+[1]*58)", 60, 0, 0, false}, {"x", 8, 0, 0, false},
	} {
		dense, every, ok := DenseLayers(c.text, c.layers)
		if ok != c.ok || ok && (dense != c.dense || every != c.expert) {
			t.Errorf("%s of %d layers: %d, every %d, %v", c.text, c.layers, dense, every, ok)
		}
	}
}

func TestAdapted(t *testing.T) {
	for text, want := range map[string]string{"q_proj,v_proj": "qkv", "all-linear": "qkv o mlp", "['o_proj', 'down_proj']": "o mlp", `.*self_attn\.(q|k|v|o)_proj`: "qkv o", "": "", "(": ""} {
		if got := strings.Join(Adapted(text), " "); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestHybrid(t *testing.T) {
	for text, want := range map[string]Hybrid{
		"M-M*|GE":   {Mixers: 3, Attention: 1, MLPs: 2},
		"CDH*/*E/M": {Attention: 4, Sparse: 3, Ahead: 2},
		"MxM/":      {Mixers: 2, Unknown: []rune{'x'}},
	} {
		if got := HybridOf(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}
