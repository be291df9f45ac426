package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// optionsOf are the options of the command train of a script, after it has run.
func optionsOf(t rapid.TB, text string, assigned bool) []keyfile.Entry {
	s := ran(t, text, nil)
	i := slices.IndexFunc(s.Commands, func(words []string) bool { return words[0] == "train" })
	switch {
	case i < 0:
		return nil
	case assigned:
		return Assignments(s.Commands[i])
	}
	return Arguments(s.Commands[i], false)
}

// TestEditOption: each change has the text that someone would write among its candidates.
func TestEditOption(t *testing.T) {
	for _, tc := range []struct {
		text string
		edit OptionEdit
		want string // "" = no candidate
	}{
		{"train --tp 2 --pp 4", OptionEdit{Key: "--tp", Value: "8"}, "train --tp 8 --pp 4"},
		{"train --tp=2 --pp=4", OptionEdit{Key: "--pp", Value: "8"}, "train --tp=2 --pp=8"},
		{"train --micro_batch 2", OptionEdit{Key: "--micro-batch", Value: "8"}, "train --micro_batch 8"},
		{"TP=${TP:-2}\ntrain --tp $TP", OptionEdit{Key: "--tp", Value: "8"}, "TP=${TP:-8}\ntrain --tp $TP"},
		{"train --fsdp x", OptionEdit{Key: "--fsdp", Value: "full_shard auto_wrap"}, `train --fsdp "full_shard auto_wrap"`},
		{"train --bf16 --tp 2", OptionEdit{Key: "--bf16", Remove: true}, "train --tp 2"},
		{"(train --tp 2 --sp)", OptionEdit{Key: "--sp", Remove: true}, "(train --tp 2 )"},
		{"train --moe 1 2 3 --tp 2", OptionEdit{Key: "--moe", Remove: true}, "train --tp 2"},
		{"train --tp 2 \\\n  --sp \\\n  --pp 4", OptionEdit{Key: "--sp", Remove: true}, "train --tp 2 \\\n  --pp 4"},
		{"train --tp 2 --pp 4", OptionEdit{Key: "--sp", Value: Present, Before: []string{"pp"}}, "train --tp 2 --sp --pp 4"},
		{"train \\\n  --tp 2 \\\n  --pp 4", OptionEdit{Key: "--cp", Value: "2"}, "train \\\n  --cp 2 \\\n  --tp 2 \\\n  --pp 4"},
		{"train --compile --tp 2", OptionEdit{Key: "--compile", Value: "full"}, "train --compile full --tp 2"},
		{"train base.yml steps=10 batch=2", OptionEdit{Key: "batch", Value: "4", Assigned: true}, "train base.yml steps=10 batch=4"},
		{"train base.yml steps=10", OptionEdit{Key: "tp", Value: "4", Assigned: true, Before: []string{"steps"}}, "train base.yml tp=4 steps=10"},
		{"train $ARGS", OptionEdit{Key: "--tp", Value: "4"}, ""},
		{"train --tp 2", OptionEdit{Key: "--pp", Remove: true}, ""},
	} {
		tc.edit.Options = optionsOf(t, tc.text, tc.edit.Assigned)
		if got := EditOption(tc.text, tc.edit); tc.want == "" && len(got) > 0 || tc.want != "" && !slices.Contains(got, tc.want) {
			t.Errorf("%s: %+v: %q, want %q among them", tc.text, tc.edit, got, tc.want)
		}
	}
}

// TestEditsOfAnyScript: after a change of an option, in whichever way it is written, one of the texts runs the command with
// that change and no other.
func TestEditsOfAnyScript(t *testing.T) {
	keys := []string{"--tp", "--pp", "--micro-batch", "--tp-comm", "--seq"}
	rapid.Check(t, func(t *rapid.T) {
		var variables, command strings.Builder
		for i, key := range keys {
			n := rapid.IntRange(1, 99).Draw(t, "n")
			way := rapid.SampledFrom([]string{"%s %d", "%s=%d", "%s '%d'", "%s $V", "%s ${V}", "%s=\"$V\"", "%s", ""}).Draw(t, "way")
			switch variable := fmt.Sprintf("V%d", i); {
			case strings.Contains(way, "V"):
				assign := rapid.SampledFrom([]string{"%s=%d\n", "%[1]s=${%[1]s:-%[2]d}\n", "export %s=\"%d\"\n"}).Draw(t, "assign")
				fmt.Fprintf(&variables, assign, variable, n)
				way = fmt.Sprintf(strings.ReplaceAll(way, "V", variable), key)
			case strings.Contains(way, "%d"):
				way = fmt.Sprintf(way, key, n)
			case way != "":
				way = fmt.Sprintf(way, key)
			}
			command.WriteString(way + rapid.SampledFrom([]string{" ", " \\\n  "}).Draw(t, "gap"))
		}
		text := variables.String() + "train " + command.String() + "--last 1\n"
		was := optionsOf(t, text, false)
		o := OptionEdit{Key: rapid.SampledFrom(keys).Draw(t, "key"), Value: fmt.Sprint(rapid.IntRange(100, 199).Draw(t, "value")), Options: was, Before: []string{"last"}}
		want := map[string]string{o.Key: o.Value}
		if o.Remove = rapid.Bool().Draw(t, "remove"); o.Remove {
			delete(want, o.Key)
			if !slices.ContainsFunc(was, func(e keyfile.Entry) bool { return e.Key == o.Key }) {
				return
			}
		}
		for _, e := range was {
			if e.Key != o.Key {
				want[e.Key] = e.Value
			}
		}
		texts := EditOption(text, o)
		if !slices.ContainsFunc(texts, func(edited string) bool {
			got := map[string]string{}
			for _, e := range optionsOf(t, edited, false) {
				got[e.Key] = e.Value
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		}) {
			t.Fatalf("%s\n%s to %s, removed %v: want %v after one of %q", text, o.Key, o.Value, o.Remove, want, texts)
		}
	})
}
