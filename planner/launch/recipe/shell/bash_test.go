package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAsBash: a script gives its commands the words that bash gives them, where there is a bash to compare with.
func TestAsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Log("there is no bash: the words are compared with those that were written down")
	}
	for _, tc := range [][2]string{
		{`declare -A L=([7b]=32 [13b]=40); declare -A H; H[7b]=4096; H[13b]=5120; S=13b; train ${L[$S]} ${H[$S]}`, "train 40 5120"},
		{`run() { local tp=$1 pp=$2; shift 2; train --tp $tp --pp $pp "$@" $#; }; tp=1; run 2 4 --sp x; train $tp`, "train --tp 2 --pp 4 --sp x 2\ntrain 1"},
		{"read -r -d '' A <<'X' || true\n --layers 40\n --hidden $B\nX\ntrain $A", "train --layers 40 --hidden $B"},
		{"B=5; A=$(cat <<X\n --layers 40\n --hidden $B\nX\n)\ntrain $A", "train --layers 40 --hidden 5"},
		{`S=13B; train ${S%B} ${S/13B/5120} ${S//[13]/7} ${S:0:2}; N=S; train ${!N}`, "train 13 5120 77B 13\ntrain 13B"},
		{`train $(expr 8 \* 16) $(echo 4) ` + "`echo 2`" + ` $(printf %d 40) $(echo "8*4" | cat) $(basename /a/b.json .json) $(dirname /a/b)`, "train 128 4 2 40 8*4 b /a"},
		{`T=1; for ((i=0;i<3;i++)); do T=$((T*2)); done; n=0; while [ $n -lt 9 ]; do n=$((n+2)); [ $n = 6 ] && break; done; until ((T>20)); do ((T+=5)); done; train $T $n`, "train 23 6"},
		{`while [[ $# -gt 0 ]]; do shift; done; set -- --a 1 "b c"; train "$@" $2 $#; for x; do [ "$x" = 1 ] && continue; train "$x"; done`, "train --a 1 b c 1 3\ntrain --a\ntrain b c"},
		{`A=(10 20 40); A[3]=5120; A+=(4096); A[0]+=7; train ${A[0]} ${A[3]} ${#A[@]} "${A[@]:1:2}" ${A[@]:4}; f() { train "${@:2}" ${@:1:1}; }; f 1 2 3`, "train 107 5120 5 20 40 4096\ntrain 2 3 1"},
		{`B=3; let "G = 16 * B"; (( M = 1 << 1 )); declare -i L=30+10; typeset H=5; G=$((G*2)); train $G $M $L $H`, "train 96 2 40 5"},
		{"mapfile -t A <<X\n--a\n4 0\nX\ntrain \"${A[@]}\"", "train --a 4 0"},
		{`printf -v T %03d 4; IFS=, read -r A B <<< "2,4,8"; read -ra W <<< "x y"; train $T $A "$B" ${W[1]}`, "train 004 2 4,8 y"},
		{`A=1; (A=2; train $A); train $A`, "train 2\ntrain 1"},
		{`f() { [ $1 = 1 ] && return; train late $1; }; f 1; f 2; g() { echo $(($1*2)); }; train $(g 21)`, "train late 2\ntrain 42"},
		{"mapfile -t A < <(printf '%s\n' a b); train ${A[1]}; read -r B < <(echo 4 8); train $B", "train b\ntrain 4 8"},
		{"D=$(mktemp -d); cd $D; cat >env.sh <<'X'\nTP=4\nX\nsource ./env.sh; . <(echo PP=2); train $TP $PP", "train 4 2"},
		{"D=$(mktemp -d); cd $D; cat >job.sh <<X\necho train $D\nX\ntrain 1; : ${X:+$Y}", "train 1"},
		{`X="a-b"; train ${X^^} ${X##*-} ${#X} ${Y:-d} ${X:+set} ${Y:+set} ${X,,}`, "train A-B b 3 d set a-b"},
	} {
		s := ran(t, tc[0], nil)
		var got []string
		for _, words := range s.Commands {
			if words[0] == "train" {
				got = append(got, strings.Join(words, " "))
			}
		}
		if strings.Join(got, "\n") != tc[1] {
			t.Errorf("%s:\n got %q\nwant %q", tc[0], strings.Join(got, "\n"), tc[1])
		}
		if bash == "" {
			continue
		}
		out, err := exec.Command(bash, "-c", "train() { echo train \"$@\"; }\n"+tc[0]).Output()
		if err != nil || strings.TrimSpace(string(out)) != tc[1] {
			t.Errorf("%s:\nbash %q, %v\nwant %q", tc[0], out, err, tc[1])
		}
	}
}

// TestLongLoops: loops without end, and values that grow in substitutions, end.
func TestLongLoops(t *testing.T) {
	for _, text := range []string{
		`while true; do train --again 1; done`, `for ((;;)); do A=$A$A; done; train 1`, `A=aaaaaaaa; while [ 1 = 1 ]; do A=$(echo $A$A); done`,
		`A=aaaaaaaaaaaaaaaa; for i in 1 2 3 4 5 6 7 8 9; do A=${A//a/$A}; done; train $A`, `f() { echo $(f)$(f); }; train $(f)`, `printf -v A %0999999999d 1; train $(printf %0999999999d 1) $A`,
		strings.Repeat("A=$(echo $A)\n", 2000) + "train 1",
	} {
		s, err := Run("test.sh", text, nil)
		if err == nil && len(s.Commands) > maxLoopItems {
			t.Errorf("%.30s: %d commands", text, len(s.Commands))
		}
	}
}
