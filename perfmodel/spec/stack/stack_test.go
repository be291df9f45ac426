package stack

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"@..2024":                         "@..2024-12",
		"mcore":                           "Megatron Core",
		"Megatron-Core@0.13":              "Megatron Core@0.13",
		"megatron_lm@2021":                "Megatron-LM@2021",
		"Megatron-LM@2025":                "Megatron Core@2025", // it became that
		"Megatron-LM@0.13":                "Megatron Core@0.13",
		"Megatron Core@0.15.0rc7":         "Megatron Core@0.15.0rc7",
		"FSDP@2.6.0+cu124":                "FSDP@2.6.0+cu124",
		"Megatron-LM@..2024-07-29":        "Megatron-LM@..2024-07",
		"NeMo Framework @ 24.09":          "NeMo@24.09",
		"  FSDP  launch=eager tp=none ":   "FSDP launch=eager tp=none",
		"@..2023 attention=flash":         "@..2023-12 attention=flash",
		"microsoft/DeepSpeed@v0.16.2":     "DeepSpeed@v0.16.2",
		"DeepSpeed@2024-05 loss=chunked":  "DeepSpeed@2024-05 loss=chunked",
		"attention=unfused launch=graphs": "attention=unfused launch=graphs",
		"tp=none launch=graphs tp=async":  "launch=graphs tp=async", // in order, the last of each
		"FSDP recompute=layernorm+moe":    "FSDP recompute=moe+layernorm",
		"recompute=mlp+core_attn+mlp":     "recompute=core+mlp", // Megatron Core's name of core
	} {
		s, err := Parse(text)
		if err != nil || s.Canonical() != want {
			t.Errorf("%q: %q, %v; want %q", text, s.Canonical(), err, want)
		}
		if again, err := Parse(s.Canonical()); err != nil || !cmp.Equal(again, s, cmp.AllowUnexported(Stated{})) {
			t.Errorf("%q: read again as %+v, %v", s.Canonical(), again, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"megatron core attention=flsh": `stack: attention="flsh": want one of unfused, torch, flash, flash-3, cudnn; did you mean flash?`,
		"FSDP attention=":              `stack: attention="": want one of unfused, `,
		"FSDP recompute=core+blocks":   `stack: recompute="core+blocks": want one of core, mlp, `,
		"FSDP recompute=core+":         `stack: recompute="core+": want one of core, `,
		"FSDP recompute=blocks+blocks": `stack: recompute="blocks+blocks": want one of core, `,
		"FSDP launch=eager+fused":      `stack: launch="eager+fused": want one of eager, `,
		"FSDP atention=flash":          `stack: part "atention" is not one of attention, launch`,
		"torchtitn":                    `stack: "torchtitn" is not a known training stack; the nearest is torchtitan`,
		"mcore 0.13":                   `stack: "mcore 0.13" is not a known training stack; the nearest is Megatron Core@0.13`,
		"mcor":                         `stack: "mcor" is not a known training stack; the nearest is Megatron Core`,
		"NeMo@..2024-13":               "stack: NeMo@..2024-13: want a date after ..",
		"NeMo@new":                     "stack: NeMo@new: want a version, such as 0.13, or a date",
		"NeMo@..now":                   "stack: NeMo@..now: want a date after ..",
		"@2024":                        "stack: @2024: a release needs a name",
		"nosuch":                       `stack: "nosuch" is not a known training stack`,
		"FSDP@2024-13":                 "stack: FSDP@2024-13: want a version, such as 0.13, or a date",
		"NeMo@2024/07":                 "stack: NeMo@2024/07: want a version",
		"NeMo@2024.07":                 "stack: NeMo@2024.07: want a version",
		"NeMo@v2024":                   "stack: NeMo@v2024: want a version",
		"DeepSpeed@0.9oops":            "stack: DeepSpeed@0.9oops: want a version",
		"torchtitan@0.2":               "stack: torchtitan@0.2: its releases are known by date only, such as torchtitan@2025-04",
		"GPT-NeoX@2.0":                 "stack: Megatron-DeepSpeed@2.0: its releases are known by date only, such as Megatron-DeepSpeed@2023-06",
	} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("nosuch"); strings.Contains(err.Error(), "nearest") {
		t.Error(err)
	}
	for text, want := range map[string]string{ // what can be read
		"mcore launch=eager x=y":    "Megatron Core launch=eager",
		"FSDP@latest launch=eager":  "FSDP launch=eager",
		"DeepSpeed@2024-05 launch=": "DeepSpeed@2024-05",
		"@latest tp=none x":         "tp=none",
		"Our Stack@new":             "Our Stack",
	} {
		s, err := Parse(text)
		if err == nil || s.Canonical() != want {
			t.Errorf("%q: %q, %v; want %q and an error", text, s.Canonical(), err, want)
		}
		if diff := cmp.Diff(Of(want, "Hopper"), Of(text, "Hopper")); diff != "" {
			t.Errorf("%q: other choices than %q: %s", text, want, diff)
		}
	}
	s, err := Parse("Our Stack@..2024-07 launch=eager")
	if !errors.As(err, new(*UnknownError)) || s.Known() || s.Name != "Our Stack" || s.Canonical() != "Our Stack@..2024-07 launch=eager" {
		t.Errorf("an unknown name: %+v, %v", s, err)
	}
}

// TestAt: a note of a release states it, unless the stack has no such release.
func TestAt(t *testing.T) {
	for _, c := range [][3]string{
		{"Megatron Core", "0.13", "Megatron Core@0.13"}, {"Megatron-LM@..2024", "0.4", "Megatron Core@0.4"}, {"NeMo@24.09", "25.04", "NeMo@24.09"},
		{"torchtitan@..2025-06", "0.4", "torchtitan@..2025-06"}, {"Megatron-DeepSpeed", "2.4", "Megatron-DeepSpeed"}, {"torchtitan", "2025", "torchtitan@2025"},
		{"FSDP@..2024", "new", "FSDP@..2024-12"}, {"", "0.4", ""}, {"Our Stack", "0.4", "Our Stack@0.4"},
	} {
		s, _ := Parse(c[0])
		if s = s.At(c[1]); s.Canonical() != c[2] {
			t.Errorf("%s at %s: %s, want %s", c[0], c[1], s.Canonical(), c[2])
		}
	}
}

// TestState: three inputs state one stack, and an error names the input at fault.
func TestState(t *testing.T) {
	for _, c := range []struct{ framework, parts, date, want, err string }{
		{"", "", "", "", ""},
		{"mcore", "", "2024-07-29", "Megatron Core@..2024-07", ""},
		{"mcore@0.13 launch=eager", "tp=none launch=graphs", "2024", "Megatron Core@0.13 launch=graphs tp=none", ""},
		{"", "launch=eager", "2022", "@..2022-12 launch=eager", ""},
		{"mcor@..2023", "launch=eager", "2022", "mcor@..2022-12 launch=eager", `stack: framework "mcor@..2023": is not a known training stack; the nearest is Megatron Core`},
		{"mcore@new", "", "", "", `stack: framework "mcore@new": want a version, such as 0.13, or a date, such as 2024 or 2024-07`},
		{"FSDP launch=eagr", "", "", "", `stack: framework "FSDP launch=eagr": want launch to be one of eager, fused, compiled, graphs, blocking; did you mean eager?`},
		{"FSDP", "tp=none launch=eagr", "", "", `stack: stack "launch=eagr": want launch to be one of eager, fused, compiled, graphs, blocking; did you mean eager?`},
		{"mcor", "tp=none eager", "", "", `stack: stack "eager": want PART=VALUE, such as launch=eager`},
		{"FSDP", "FSDP@2024", "", "", `stack: stack "FSDP@2024": want PART=VALUE, such as launch=eager`},
		{"FSDP", "", "next year", "", `stack: date "next year": want YYYY, YYYY-MM or YYYY-MM-DD`},
	} {
		s, err := State(c.framework, c.parts, c.date)
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || err.Error() != c.err || !errors.As(err, new(*InputError))):
			t.Errorf("%+v: %v", c, err)
		case c.want != "" && s.Canonical() != c.want:
			t.Errorf("%+v: %s", c, s.Canonical())
		}
	}
	if _, err := State("Our Stack", "", ""); !errors.As(err, new(*UnknownError)) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestReleases: a version and a date select the last release not later.
func TestReleases(t *testing.T) {
	for text, attention := range map[string]string{
		"Megatron-LM@2021": Unfused, "Megatron-LM@2023-05": Flash, "Megatron-LM@2024": Flash, "Megatron-LM@2026": CuDNN,
		"Megatron Core@0.1": Flash, "Megatron Core@0.13": CuDNN, "Megatron Core@0.9.1": CuDNN, "Megatron Core@0.7": Flash,
		"DeepSpeed@0.9": Unfused, "DeepSpeed@0.16": Torch, "Megatron-LM@0.13": CuDNN, "DeepSpeed@0.12.0rc1": Torch, "FSDP attention=flash-3": Flash3,
	} {
		c := Of(text, "Hopper")
		for i := range c.N {
			if got := c.Stacks[i].Parts.Attention; got != attention {
				t.Errorf("%s: attention %s, want %s", text, got, attention)
			}
		}
	}
}

// TestReleaseParts: what changed from one release to another, as the code or the documents of the stacks have it.
func TestReleaseParts(t *testing.T) {
	for text, want := range map[string]string{
		"Megatron-LM@2021-09":     "tp=none reduce=16bit stages=even weights=16bit", // its own all-reduce of a column-parallel layer waits
		"Megatron-LM@2021-10":     "tp=async reduce=16bit stages=even weights=16bit",
		"Megatron-LM@2023-07":     "tp=async reduce=16bit stages=even weights=16bit",
		"Megatron Core@0.3":       "tp=async reduce=fp32 stages=even weights=16bit",
		"Megatron Core@0.13":      "tp=async reduce=fp32 stages=even weights=16bit",
		"Megatron-DeepSpeed@2023": "tp=none reduce=16bit stages=even weights=16bit",
		"torchtitan@2025-06":      "tp=none reduce=fp32 stages=even weights=16bit",
		"Megatron-Bridge@25.11":   "tp=fused reduce=16bit stages=even weights=fp8", // its presets have fp8_param_gather
		"LiBai@2023":              "tp=none reduce=16bit stages=middle weights=16bit",
	} {
		c := Of(text, "Ampere")
		if !c.Stated() {
			t.Fatalf("%s is not stated", text)
		}
		p := &c.Stacks[0].Parts
		if got := "tp=" + p.TP + " reduce=" + p.Reduce + " stages=" + p.Stages + " weights=" + p.Weights; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestReleaseText: every release of the table can be stated.
func TestReleaseText(t *testing.T) {
	s, err := Parse("optimizer=muon")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range All() {
		text := s.Release(&of)
		want := of.Parts
		want.Optimizer = Muon
		if c := Of(text, "Hopper"); !c.Stated() || c.Stacks[0].Name != of.Name || c.Stacks[0].Parts != want {
			t.Errorf("%s: %d choices, the first %+v; want %s with %v", text, c.N, c.Stacks[0], of.Name, want)
		}
	}
}

// TestChoices: probabilities of each use add up to one, have no more than four stacks, and favour the stacks of the
// devices' time.
func TestChoices(t *testing.T) {
	probability := func(text, arch string, use Use, of func(*Stack) bool) (sum float64) {
		c := Of(text, arch)
		for i := range c.N {
			if of(c.Stacks[i]) {
				sum += c.Weight[use][i]
			}
		}
		return sum
	}
	unfused := func(s *Stack) bool { return s.Parts.Attention == Unfused }
	for _, x := range []struct {
		text, arch string
		least      float64
		most       float64
	}{
		{"", "Volta", 1, 1}, {"", "Ampere", 0, 0.3}, {"@..2022", "Ampere", 0.8, 1}, {"", "Hopper", 0, 0}, {"", "Blackwell", 0, 0}, {"@..2021", "Ampere", 1, 1},
		{"Megatron-LM", "Ampere", 0.1, 0.4}, {"Megatron-LM", "Blackwell", 0, 0}, {"Megatron-LM@..2024-10", "Volta", 1, 1},
	} {
		if p := probability(x.text, x.arch, Split, unfused); p < x.least-1e-9 || p > x.most+1e-9 {
			t.Errorf("%q on %s: unfused attention with probability %.2f, want %g to %g", x.text, x.arch, p, x.least, x.most)
		}
	}
	deepSpeed := func(s *Stack) bool { return s.Parts.ZeRO == DeepSpeed }
	if p := probability("", "Hopper", Split+low, deepSpeed); p != 0 {
		t.Errorf("DeepSpeed multiplies in 8 bits with probability %g", p)
	}
	if c := Of("Megatron-LM@..2025-06", "Blackwell"); c.Name != "Megatron Core" || !c.Stated() {
		t.Errorf("Megatron-LM on Blackwell: %s of %d choices", c.Name, c.N)
	}
	if c := Of("GPT-NeoX", "Blackwell"); !c.Stated() || c.Stacks[0].Date != "2023-06" {
		t.Errorf("GPT-NeoX on devices from after its development: %s@%s of %d choices", c.Stacks[0].Name, c.Stacks[0].Date, c.N)
	}
	if c := Of("Our Stack", "Ampere"); c.Name != "Our Stack" || c.Stated() {
		t.Errorf("an unknown name: %s of %d choices", c.Name, c.N)
	}
}

// TestChoicesInEveryMonth: an unstated stack of any month has choices on every architecture.
func TestChoicesInEveryMonth(t *testing.T) {
	for arch := range launches {
		for year := 2012; year <= 2027; year++ {
			for month := 1; month <= 12; month++ {
				date := fmt.Sprintf("%d-%02d", year, month)
				c := choose("@.."+date, arch)
				for use := range c.Weight {
					n, sum := 0, 0.0
					for _, w := range c.Weight[use] {
						if sum += w; w > 0 {
							n++
						}
					}
					if n == 0 || n > perUse || math.Abs(sum-1) > 1e-9 {
						t.Errorf("%s, %s, use %d: %d choices with probability %g", arch, date, use, n, sum)
					}
				}
			}
		}
	}
}

func TestChoicesAddUp(t *testing.T) {
	archs := []string{"", "Kepler", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell", "Blackwell Ultra", "CDNA2", "CDNA3", "AVX2"}
	names := append(Names(), "", "Our Stack")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(names).Draw(t, "name") + rapid.SampledFrom([]string{"", "@..2019", "@..2022-03", "@..2026", " launch=eager", " attention=flash loss=chunked"}).Draw(t, "rest")
		arch := rapid.SampledFrom(archs).Draw(t, "arch")
		c := Of(text, arch)
		for use := range c.Weight {
			sum, n := 0.0, 0
			for i, w := range c.Weight[use] {
				if sum += w; w > 0 {
					n++
				}
				if (i < c.N) != (c.Stacks[i] != nil) || w < 0 || i >= c.N && w > 0 {
					t.Fatalf("%q on %s: %+v", text, arch, c)
				}
			}
			if math.Abs(sum-1) > 1e-9 || n > perUse {
				t.Fatalf("%q on %s, use %d: %d choices with probability %g", text, arch, use, n, sum)
			}
		}
		if *Of(text, arch) != *c {
			t.Fatalf("%q on %s: another answer the second time", text, arch)
		}
	})
}

// TestTable: every release has a date after the one before, all parts, and a source; names and aliases are unique.
func TestTable(t *testing.T) {
	seen := map[string]string{}
	for i, releases := range all {
		for j, r := range releases {
			if !dateForm.MatchString(r.Date) || len(r.Date) != len("2006-01") || j > 0 && r.Date <= releases[j-1].Date || r.Source == "" {
				t.Errorf("%s@%s: %+v", r.Name, r.Date, r)
			}
			if j > 0 && r.Parts == releases[j-1].Parts {
				t.Errorf("%s@%s changes nothing", r.Name, r.Date)
			}
			var p Parts
			for _, part := range strings.Fields(r.Parts.String()) {
				name, value, _ := strings.Cut(part, "=")
				if err := p.set(name, value); err != nil {
					t.Errorf("%s@%s: %v", r.Name, r.Date, err)
				}
			}
			if p != r.Parts {
				t.Errorf("%s@%s: %s is not all parts", r.Name, r.Date, r.Parts)
			}
		}
		for _, name := range append([]string{lines[i].name}, lines[i].aliases...) {
			if got := lineOf(name); got != i || seen[name] != "" {
				t.Errorf("%s is of %s and %s", name, lines[i].name, seen[name])
			}
			seen[name] = lines[i].name
		}
	}
}

func TestBefore(t *testing.T) {
	for text, want := range map[string]string{
		"Megatron Core@0.13": "Megatron Core@2025-05", "Megatron Core@0.3 launch=eager": "Megatron-LM@2023-02 launch=eager", "NeMo@24.09": "NeMo@2023-11",
		"Megatron-LM@2021": "", "FSDP": "", "": "", "torchtitan@2024-05": "",
	} {
		got, ok := Before(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestUseOf(t *testing.T) {
	for plan, want := range map[string]Use{"dp=8": Replicated, "dp=8,zero=2": Replicated, "dp=8,zero=3": Sharded, "dp=4,tp=2,zero=3": Split,
		"pp=2": Split, "dp=8,precision=fp8": Replicated + low, "tp=8,precision=fp4": Split + low} {
		p, err := spec.ParsePlan(plan)
		if err != nil {
			t.Fatal(err)
		}
		if p = p.Normal(); UseOf(&p) != want {
			t.Errorf("%s: use %d, want %d", plan, UseOf(&p), want)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		Of("Megatron-LM@..2024-07", "Ampere")
	}
}
