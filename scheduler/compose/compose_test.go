package compose_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/compose"
)

func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"words":   {"policy: las:quantum=600\nadmission: load:1.2\nplacement: consolidated\nround: 300\n", "map[admission:load:1.2 placement:consolidated policy:las:quantum=600 round:300]"},
		"mapping": {"description: LAS, held back\npolicy: {name: las, quantum: 600, backfill: false}\nadmission:\n  name: load\n  x: 1.2\n", "map[admission:load:x=1.2 policy:las:quantum=600:backfill=false]"},
		"list":    {"policy:\n  name: tiresias\n  limits: [3600, 57600]\n", "map[policy:tiresias:limits=3600/57600]"},
		"mode":    {"policy: srtf\ncompat: blox:whole-demand=false\n", "map[compat:blox:whole-demand=false policy:srtf]"},
	} {
		got, err := compose.Read("s.yaml", []byte(c.text))
		if fmt.Sprint(got) != c.want || err != nil {
			t.Errorf("%s: %v, error %v, want %s", name, got, err, c.want)
		}
	}
}

// TestDocumentedFile reads the file in docs/reference/file-formats.md.
func TestDocumentedFile(t *testing.T) {
	const doc = "../../docs/reference/file-formats.md"
	b := spectest.ReadFile(t, doc)
	block := regexp.MustCompile("(?s)```yaml\n(description: .*?)```").FindSubmatch(b)
	if block == nil {
		t.Fatalf("%s shows no scheduler", doc)
	}
	got, err := compose.Read(doc, block[1])
	if want := "map[admission:load:1.2 placement:consolidated policy:las:quantum=600 round:300]"; fmt.Sprint(got) != want || err != nil {
		t.Errorf("the file of %s is %v, error %v, want %s", doc, got, err, want)
	}
}

// All mistakes are reported together, with their positions.
func TestReadFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.yaml:1:1: the file is empty"},
		{"round: 300\n", "s.yaml:1:1: the scheduler has no policy, want a line like policy: las"},
		{"policy: lass\nround: 0\n", `s.yaml:1:9: policy: unknown policy "lass", there are: las, |s.yaml:2:8: 0 is not above 0`},
		{"polcy: las\n", `s.yaml:1:1: unknown key "polcy", nearest is policy`},
		{"policy: fifo,las\n", `s.yaml:1:9: "fifo,las" is more than one, want one`},
		{"policy: {quantum: 3}\n", "s.yaml:1:9: no name, want a line like name: las"},
		{"policy:\n  name: las\n  quantum: -1\n  backfil: true\n", `s.yaml:3:12: policy las: option quantum "-1": want a number|s.yaml:4:3: unknown key "backfil", nearest is backfill`},
		{"policy: {name: nonesuch}\n", `s.yaml:1:16: policy: unknown policy "nonesuch"`},
		{"policy: las\nadmission:\n  name: loads\n", `s.yaml:3:9: policy: unknown admission "loads", there are: load`},
		{"policy: las\nadmission: load:x=y\nplacement: diagonal\ncompat: blox:tick\n",
			`s.yaml:2:12: admission load: option x "y": want a number|s.yaml:3:12: place: unknown placement "diagonal"|s.yaml:4:9: compat: blox has no quirk "tick"`},
		{"policy:\nround: soon\n", `s.yaml:1:1: policy has no value|s.yaml:2:8: "soon" is not a number`},
		{"policy: {name: las, quantum: {a: b}}\n", "s.yaml:1:30: a mapping, want text"},
	} {
		_, err := compose.Read("s.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%q was accepted", c.text)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for i, want := range strings.Split(c.want, "|") {
			if i >= len(lines) || !strings.HasPrefix(lines[i], "compose: ") || !strings.Contains(lines[i], want) {
				t.Errorf("%q: error\n%v\nwant line %d to have %s", c.text, err, i+1, want)
				break
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("policy: las:quantum=600\nadmission: load:1.2\nplacement: consolidated\nround: 300\n")
	f.Add("policy: {name: tiresias, limits: [1, 2]}\ncompat: blox\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := compose.Read("s.yaml", []byte(text))
		if err == nil && got["policy"] == "" {
			t.Errorf("%q is read as %v", text, got)
		}
	})
}
