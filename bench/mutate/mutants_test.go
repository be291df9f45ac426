package main

import (
	"fmt"
	"slices"
	"testing"
)

func TestMutantsOf(t *testing.T) {
	source := []byte(`package p

import "fmt"

var table [4]int

func f(a, b int) int {
	if a >= b && a != 3 {
		a += b
	}
	fmt.Println("a < b")
	a++
	return max(a, b) * 2
}
`)
	ms, err := mutantsOf("p.go", source)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range ms {
		got = append(got, fmt.Sprintf("%d %s %s", m.line, m.old, m.new))
		if s := m.apply(source); string(s[m.offset:m.offset+len(m.new)]) != m.new || len(s) != len(source)+len(m.new)-len(m.old) {
			t.Errorf("%v makes %s", m, s)
		}
	}
	want := []string{"8 >= >", "8 && ||", "8 != ==", "8 3 (3+1)", "9 += -=", "9 += =", "12 ++ --", "13 max min", "13 * /", "13 2 (2+1)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDraw(t *testing.T) {
	all := make([]mutant, 10)
	for i := range all {
		all[i].offset = i
	}
	some := draw(all, 4, 1)
	if len(some) != 4 || !slices.IsSortedFunc(some, func(a, b mutant) int { return a.offset - b.offset }) {
		t.Errorf("%v", some)
	}
	if len(draw(all, 0, 1)) != 10 || len(draw(all, 20, 1)) != 10 {
		t.Error("not all of them")
	}
}
