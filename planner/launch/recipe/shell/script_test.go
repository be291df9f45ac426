package shell

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestRun: commands have the values of variables, arrays, branches that are taken, functions and scripts within scripts.
func TestRun(t *testing.T) {
	for text, want := range map[string]string{
		`A=1; B="$A $A"; train --x $A "$B"`:                           "train|--x|1|1 1",
		`ARGS=(--tp 2); ARGS+=(--pp 4); train "${ARGS[@]}"`:           "train|--tp|2|--pp|4",
		`TP=8; if [ $TP -gt 4 ]; then train wide; else train; fi`:     "train|wide",
		`case $GPU in h100) train h;; *) train other;; esac`:          "train|h",
		`run() { train --in function; }; run`:                         "train|--in|function",
		`bash -c "train --inner ${N:-3}"`:                             "train|--inner|3 bash|-c|train --inner 3",
		`for lr in 1 2; do train $lr; done`:                           "train|1 train|2",
		`train $(hostname) end`:                                       "train|end",
		"cat >conf.json <<EOF\n{\"tp\": $SIZE}\nEOF\ntrain conf.json": "cat train|conf.json",
		`train --mbs $MISSING`:                                        "train|--mbs",
	} {
		s, err := Run("test.sh", text, map[string]string{"GPU": "h100", "SIZE": "2"})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, words := range s.Commands {
			got = append(got, strings.Join(words, "|"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if strings.Contains(text, "conf.json") && s.Files["conf.json"] != "{\"tp\": 2}\n" {
			t.Errorf("files %q", s.Files)
		}
		if unset := slices.Sorted(maps.Keys(s.Unset)); slices.Contains(unset, "MISSING") != strings.Contains(text, "MISSING") {
			t.Errorf("%s: %q have no value", text, unset)
		}
	}
}

// TestVariables: fragments have options in variables, Slurm and arrays give numbers, and what is given wins.
func TestVariables(t *testing.T) {
	s, err := Run("part.sh", "#SBATCH -N 4\n#SBATCH --gres=gpu:h100:8\nARGS=\"--tp $TP --nodes $SLURM_NNODES --gpus $SLURM_GPUS_ON_NODE --seq $SEQ\"\nDEVICES=(8 4)\nNAME=x\n", map[string]string{"TP": "2"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Options(), " "); got != "--tp 2 --nodes 4 --gpus 8 --seq 8 4" || !s.Unset["SEQ"] || s.Nodes != "4" {
		t.Errorf("options %q, unset %v, nodes %q", got, s.Unset, s.Nodes)
	}
	if got := s.Array("DEVICES"); !slices.Equal(got, []string{"8", "4"}) || s.Array("NAME") != nil || s.Array("NONE") != nil {
		t.Errorf("%q", got)
	}
}

// TestBounds: a script that would go on for ever or make values without end is an error or is cut off.
func TestBounds(t *testing.T) {
	for _, text := range []string{
		`f() { f; f; }; f`,
		"A=aaaaaaaa\n" + strings.Repeat("A=$A$A$A$A\n", 40) + "train $A",
		"train " + strings.Repeat("x", maxScript),
		"if",
	} {
		s, err := Run("test.sh", text, nil)
		if err != nil && !strings.HasPrefix(err.Error(), "test.sh: ") {
			t.Errorf("%.20s: %v", text, err)
		}
		if err == nil && len(strings.Join(slices.Concat(s.Commands...), "")) > maxScript {
			t.Errorf("%.20s: %d commands", text, len(s.Commands))
		}
	}
}
