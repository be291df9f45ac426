package named

import (
	"cmp"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	s := NewSet[int]("policy", "policy")
	s.Add("rubick", 3)
	s.Add("fifo", 1)
	s.Add("fifo-backfill", 2)
	if v, err := s.Get("fifo"); v != 1 || err != nil {
		t.Errorf("fifo is %d, %v", v, err)
	}
	if all := s.All(); len(all) != 3 || all[0] != 1 || all[1] != 2 || all[2] != 3 {
		t.Errorf("not by name: %v", all)
	}
	for wrong, nearest := range map[string]string{"rubik": "rubick, fifo", "Fifo": "fifo, fifo-backfill", "": "fifo, rubick"} {
		_, err := s.Get(wrong)
		if want := `policy: unknown policy "` + wrong + `", there are: ` + nearest; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", wrong, err, want)
		}
	}
}

func TestSetPanics(t *testing.T) {
	s := NewSet[int]("p", "thing")
	s.Add("a", 1)
	for _, name := range []string{"", "a"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("adding %q did not panic", name)
				}
			}()
			s.Add(name, 2)
		}()
	}
}

func TestNearest(t *testing.T) {
	names := []string{"Llama2-7B", "Llama3-8B", "Llama3-70B", "GPT-1.7B", "GPT-18B"}
	for in, want := range map[string]string{
		"lama3_8b": "Llama3-8B", "llama3": "Llama3-8B", "gpt 1.7": "GPT-1.7B", "gpt18": "GPT-18B", "LLAMA-2-7B": "Llama2-7B",
	} {
		if got := Nearest(in, names, 2); len(got) != 2 || got[0] != want {
			t.Errorf("Nearest(%q) = %v, want %s first", in, got, want)
		}
	}
	if got := Nearest("x", names, 9); len(got) != len(names) {
		t.Errorf("asked for 9 of %d names, got %v", len(names), got)
	}
}

func TestCompare(t *testing.T) {
	want := []string{
		"DGX-1", "DGX-2", "DGX A100", "GPT2-large", "GPT3-5B", "GPT3-175B", "gpt-125M", "GPT-1.7B", "GPT-18B", "GPT-1T", "GPT-OSS-20B", "GPT-OSS-120B",
		"job125m_x", "job7b_x", "job30b_x", "llama2-7b", "Llama2-13B", "Llama3-8B", "Llama3.1-8B", "Qwen3-30B", "Qwen3-30B-A3B", "V100 2", "V100-2", "v100-10", "ß1",
		"ß" + strings.Repeat("9", 400), "ß" + strings.Repeat("9", 400) + "x",
	}
	for i, a := range want {
		for j, b := range want {
			if got := Compare(a, b); got != cmp.Compare(i, j) {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, cmp.Compare(i, j))
			}
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		d    int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "abc", 0}} {
		if got := editDistance(tc.a, tc.b); got != tc.d || editDistance(tc.b, tc.a) != tc.d {
			t.Errorf("%q to %q: %d, want %d", tc.a, tc.b, got, tc.d)
		}
	}
}

func TestDissimilarity(t *testing.T) {
	for _, tc := range []struct {
		name, candidate string
		want            int
	}{
		{"gpt 2", "GPT2", 0},
		{"gpt2", "GPT2-small", 1}, // whole words are missing
		{"gpt2", "GPT-22B", 4},    // a different number
		{"gpt2sm", "GPT2-small", 4},
		{"gpt2", "gpt3", 4},
		{"llama3", "Llama3-8B", 1},
		{"llama3", "Llama3.2-1B", 8},
		{"Mistral-7B-v0.1", "Mistral-7B", 6},
		{"", "ab", 8},
	} {
		if got := Dissimilarity(tc.name, tc.candidate); got != tc.want {
			t.Errorf("%q to %q: %d, want %d", tc.name, tc.candidate, got, tc.want)
		}
	}
}
