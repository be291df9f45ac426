package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ran follows a script to its end.
func ran(t rapid.TB, text string, variables map[string]string) *Script {
	t.Helper()
	s, err := Run("test.sh", text, variables)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// commands are the commands of a script, with one separator between words and another between commands.
func commands(s *Script, words, between string) string {
	var out []string
	for _, command := range s.Commands {
		out = append(out, strings.Join(command, words))
	}
	return strings.Join(out, between)
}

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
		s := ran(t, text, map[string]string{"GPU": "h100", "SIZE": "2"})
		if got := commands(s, "|", " "); got != want {
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

// TestUnset: a variable without a value is one that a command needs and that has no default.
func TestUnset(t *testing.T) {
	for text, want := range map[string][]string{
		`train ${Y:-d} ${Z-d} ${X:+set} ${W+set}`: nil, `train ${Y:-$Q}`: {"Q"}, `train ${X:+--x $X}`: {"X"}, `train ${X:-1} $X`: {"X"}, `train $X ${X:-1}`: {"X"},
		`A="--x ${X:+y} --z ${Z:-3}"; train $A`: nil, `A=$X; train ${A:-1}`: {"X"}, `train ${X:?}`: {"X"}, `train ${X:=3} $X`: nil, `train ${#X}`: {"X"}, `train $(echo ${X:-3}) $X`: {"X"},
	} {
		s := ran(t, text, nil)
		delete(s.Unset, "PWD")
		if got := slices.Sorted(maps.Keys(s.Unset)); !slices.Equal(got, want) {
			t.Errorf("%s: %q have no value, want %q", text, got, want)
		}
	}
}

// TestWrittenFiles: a script that another one writes is followed, and so is what <( ) prints.
func TestWrittenFiles(t *testing.T) {
	s := ran(t, "cat >job.sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=4\nsrun train --nodes \\$SLURM_NNODES\nEOF\nsbatch job.sbatch\ntrain --config <(echo '{\"a\": 1}')\ntrain <(nvidia-smi) > >(tee log)\n", nil)
	if text := commands(s, " ", "\n"); !strings.Contains(text, "srun train --nodes 4") || !strings.Contains(text, "train --config /dev/fd/63") || s.Nodes != "4" {
		t.Errorf("%s\n%s nodes", text, s.Nodes)
	}
	if s.Files["/dev/fd/63"] != "{\"a\": 1}\n" {
		t.Errorf("files %q", s.Files)
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
		if err != nil && !strings.HasPrefix(err.Error(), "test.sh:") {
			t.Errorf("%.20s: %v", text, err)
		}
		if err == nil && len(strings.Join(slices.Concat(s.Commands...), "")) > maxScript {
			t.Errorf("%.20s: %d commands", text, len(s.Commands))
		}
	}
}

// TestManyFiles: the time of a command does not grow with the files that the script has written.
func TestManyFiles(t *testing.T) {
	const loops = "for ((i=0; i<62; i++)); do for ((j=0; j<64; j++)); do "
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprintf("a%d", i))
	}
	text := loops + "cat > f$i.$j <<X\n1\nX\ndone; done\n" + loops + "bash " + strings.Join(names, " ") + "; done; done\n"
	began := time.Now()
	s := ran(t, text, nil)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d files and %d commands take %v", len(s.Files), len(s.Commands), took)
	}
	if len(s.Files) < 3500 || len(s.Commands) < 2*len(s.Files)*9/10 {
		t.Errorf("%d files and %d commands", len(s.Files), len(s.Commands))
	}
}

// TestStartedScript: the script of bash or sbatch is its first argument that is no option. A written file that is another
// argument leaves the command as it is.
func TestStartedScript(t *testing.T) {
	const ds = "cat >ds.json <<X\n{}\nX\n"
	const job = "cat >job.sh <<'X'\ntrain --tp $1 \"${@:2}\"\nX\n"
	for text, want := range map[string]string{
		ds + "srun bash run.sh --tp 8 --config ds.json":                        "cat|srun bash run.sh --tp 8 --config ds.json",
		ds + "sbatch job.sh ds.json":                                           "cat|sbatch job.sh ds.json",
		ds + "bash -c 'train --tp 2' ds.json":                                  "cat|train --tp 2|bash -c train --tp 2",
		ds + "bash ds.json --tp 8":                                             "cat|{}|bash ds.json",
		job + "sbatch --wait -N 4 -c 8 --exclusive job.sh 8":                   "cat|train --tp 8|sbatch --wait -N 4 -c 8 --exclusive job.sh",
		job + "set -- a b; srun bash -eo pipefail ./job.sh 4 --pp 2; train $1": "cat|train --tp 4 --pp 2|srun bash -eo pipefail ./job.sh|train a",
		"bash -c 'train $1 $2' name 1 2":                                       "train 1 2|bash -c train $1 $2",
		"bash -s 4 <<'X'\ntrain $1\nX":                                         "train 4|bash -s 4",
		"sbatch -N 2 /dev/stdin 4 <<'X'\ntrain $1\nX":                          "train 4|sbatch -N 2 /dev/stdin 4",
		"set -- 5; eval train '$1'":                                            "train 5|eval",
		"set -- 5; eval TP=8 'PP=$1'; train $TP $PP":                           "eval|train 8 5",
		"A='--tp 8 --name \"a b\"'; eval \"train $A\"":                         "train --tp 8 --name a b|eval",
		"eval 'if'; train":                                                     "if|eval|train",
		"train $(eval echo 4)":                                                 "train 4",
		"sbatch -N 4 --wrap 'train $SLURM_NNODES' --time 4":                    "train 4|sbatch -N 4 --wrap",
		"sbatch --nodes=2 --wrap=\"srun train \\$SLURM_NNODES\"":               "srun train 2|sbatch --nodes=2",
		job + "sbatch --nodes 16 job.sh '$SLURM_NNODES'":                       "cat|train --tp $SLURM_NNODES|sbatch --nodes 16 job.sh",
		"cat <<X | sbatch\n#SBATCH --nodes=3\ntrain \\$SLURM_NNODES\nX":        "train 3|sbatch",
		"echo 'train 4' | bash":                                                "train 4|bash",
	} {
		s := ran(t, text, nil)
		if got := commands(s, " ", "|"); got != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
		if s.Unset["1"] {
			t.Errorf("%s: $1 has no value", text)
		}
	}
}

// TestAppended: text is added to a file, by a redirection or by tee, which also writes what a pipe gives it.
func TestAppended(t *testing.T) {
	for text, want := range map[string]string{
		"cat >f <<X\na\nX\ncat >>f <<X\nb\nX":                  "a\nb\n",
		"cat >>f <<X\nb\nX":                                    "b\n",
		"cat >f <<X\na\nX\ncat >f <<X\nb\nX":                   "b\n",
		"tee f <<X\na\nX":                                      "a\n",
		"sudo tee -a ./f >/dev/null <<X\na\nX\ntee -a f <<<b":  "a\nb\n",
		"cat <<X | tee f\na\nX":                                "a\n",
		"echo '{' >f; echo '\"tp\": 2' >>f; printf '}\\n' >>f": "{\n\"tp\": 2\n}\n",
		"A=$(echo 1 >f; echo 2); echo $A >>f":                  "1\n2\n",
		"train 2>f <<X\na\nX":                                  "",
		"cat >g <<<b; echo a >f; sed s/a/b/ <g >>f":            "",
		"for i in 1 2 3; do echo $i >>f; done":                 "1\n2\n3\n",
		"echo a >f; : >f; echo b >>f":                          "b\n",
		"echo a >f; >f; echo b >>f":                            "b\n",
		"echo a >f; A=1 >f; echo b >>f":                        "b\n",
		"echo a >f; $NONE >f; echo b >>f":                      "b\n",
		"echo a >f; echo -n >f; echo b >>f":                    "b\n",
		"echo a >f; rm -f ./f; echo b >>f":                     "b\n",
		"echo a >f; mv f g; echo b >>f":                        "b\n",
		"train >f; echo a >f; echo b >>f":                      "a\nb\n",
		"echo -e 'a\\nb' >f":                                   "a\nb\n",
		"echo a >f; printf -v X b >f":                          "",
		"echo a >f; echo b &>f; echo c &>>f":                   "b\nc\n",
		"echo a | cat >f; echo b | cat - >>f":                  "a\nb\n",
	} {
		if got, _ := ran(t, text, nil).Written("f"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestUnknownFile: a file that gets text that is not known is not known, even if known text is added.
func TestUnknownFile(t *testing.T) {
	for _, text := range []string{
		"cat >g <<<b; sed s/a/b/ <g >>f", "sed s/a/b/ <g >f", "train >f", "cp x f", "sudo mv x f", "cp x f .", "cat x >f", "cat x - <<<a >f", "cat <x >f", "{ echo b; } >f", "for i in 1 2; do echo $i; done >f",
		"train | tee f", "printf %09999d 1 >f", "A=$(train | tee f)", "echo b | sed s/b/c/ >f", "train &>f",
		"A=" + strings.Repeat("x", 1<<14) + strings.Repeat("; echo"+strings.Repeat(" $A", 40)+" >>f", 2),
	} {
		for _, added := range []string{"", "; echo c >>f", "; tee -a f <<<c"} {
			if got, ok := ran(t, "echo a >f; "+text+added, nil).Written("f"); ok {
				t.Errorf("%.80s%s: %.80q is known", text, added, got)
			}
		}
	}
}

// TestLongFiles: large files that are written, added to or started often end the script.
func TestLongFiles(t *testing.T) {
	large := "cat >g <<'X'\ntrue\n" + strings.Repeat("# "+strings.Repeat("x", 1<<10)+"\n", 400) + "X\nA=" + strings.Repeat("x", 1<<14) + "\n"
	for _, text := range []string{"echo a >>g\n", "cat <g >f\n", "bash g\n", "source g\n", "sbatch" + strings.Repeat(" -J $A", 30) + " --wrap true\n"} {
		if _, err := Run("test.sh", large+strings.Repeat(text, 50), nil); !errors.Is(err, errLong) {
			t.Errorf("%.20s: %v", text, err)
		}
		ran(t, large+text, nil)
	}
}

// TestCopiedFile: what a program other than cat and tee makes of a file is not known.
func TestCopiedFile(t *testing.T) {
	const written = "cat >tmpl <<X\ntp: TP\nX\ncat >old <<X\n1\nX\n"
	for command, want := range map[string]string{
		"cat <tmpl >old": "tp: TP\n", "tee <tmpl >old": "tp: TP\n", "sed s/TP/4/ <tmpl >old": "", "envsubst <<<a >old": "a\n", "train >log": "1\n",
	} {
		if got, ok := ran(t, written+command, nil).Written("old"); got != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
