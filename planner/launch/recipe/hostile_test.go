package recipe

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Files made to be slow to read take no more than a second or two: what parsers need grows with the file, not with its
// square. The bound is generous, so that a busy machine does not matter.
func TestHostileFiles(t *testing.T) {
	const size = 1 << 18
	r := func(s string) string { return strings.Repeat(s, size/len(s)) }
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	double := "A=xxxxxxxx\n" + strings.Repeat("A=$A$A\n", 60) + "torchrun pretrain_gpt.py --num-layers $A\n"
	const args = "torchrun pretrain_gpt.py --num-layers "
	for _, c := range [][2]string{
		{"a.json", r("{")}, {"a.json", r("[")}, {"a.json", r(`{"a":`)},
		{"a.yaml", r("{")}, {"a.yaml", r("[")}, {"a.yaml", r("- ")}, {"a.yaml", r("? ")}, {"a.yaml", r("a: ")}, {"a.yaml", laughs}, {"a.yaml", r("&a ")},
		{"a.yaml", r("a: 1\n")}, {"a.yaml", r("- a: 1\n")}, {"a.yaml", r("# x\n")}, {"a.yaml", "a: |\n" + r(" x\n")},
		{"a.toml", "a=" + r("[")}, {"a.toml", "a=" + r("{a=")}, {"a.toml", r("a.") + "a=1"}, {"a.toml", r("[[a]]\n")}, {"a.toml", r("[a.b]\n")},
		{"a.sh", r("(")}, {"a.sh", r("$(")}, {"a.sh", r("`")}, {"a.sh", r("${")}, {"a.sh", r("{")}, {"a.sh", r("if ")}, {"a.sh", r("{ ")}, {"a.sh", r("! ")}, {"a.sh", r("a|")}, {"a.sh", r("a;")},
		{"a.sh", double}, {"a.sh", r(args + "1 ")}, {"a.sh", r("A=1 ") + args}, {"a.sh", r("$((1+")}, {"a.sh", "for i in {1..100000000}; do A=$A$i; done\n" + args + "$A"},
		{"a.sh", "echo {1..100000}{1..100000}\n" + args + "{1..100000}{1..100000}"}, {"a.sh", "while true; do :; done\n" + args + "1"}, {"a.sh", "f(){ f; }; f; " + args + "1"}, {"a.sh", args + r("${A:=")},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = Read(c[0], []byte(c[1]), Options{})
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s %.30q...: not read in a minute", c[0], c[1])
		}
	}
	if _, err := Read("a.toml", []byte("[parallelism]\na = "+strings.Repeat("[", 200)), Options{}); err == nil || !strings.Contains(err.Error(), "brackets nest deeper than 128") {
		t.Error(err)
	}
	if _, err := Read("a.toml", []byte(strings.Repeat("a.", 200)+"b = 1"), Options{}); err == nil || !strings.Contains(err.Error(), "more than 128 parts") {
		t.Error(err)
	}
}
