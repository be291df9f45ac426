package main

import (
	"strings"
	"testing"
)

const eventLines = `not an event
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs a GPU\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: 1, want 2\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- FAIL: TestB (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.01s\n"}
{"Action":"fail","Package":"p","Elapsed":0.01}
{"Action":"output","Package":"q","Test":"TestC","Output":"    c_test.go:3: logged\n"}
{"Action":"pass","Package":"q","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"q","Output":"PASS\n"}
{"Action":"output","Package":"q","Output":"ok  \tq\t0.01s\n"}
{"Action":"pass","Package":"q","Elapsed":0.01}
{"Action":"output","Package":"q","Test":"TestD","Output":"    d_test.go:3: needs a GPU\n"}
{"Action":"skip","Package":"q","Test":"TestD","Elapsed":0}
{"Action":"build-output","ImportPath":"r","Output":"r.go:1:1: wrong\n"}`

const printed = "not an event\n    b_test.go:3: 1, want 2\n--- FAIL: TestB (0.00s)\nFAIL\tp\t0.01s\nok  \tq\t0.01s\nr.go:1:1: wrong\n"

func TestReport(t *testing.T) {
	for each, want := range map[bool]string{
		false: "skipped: 2 tests: needs a GPU\n",
		true:  "skipped: p TestA: needs a GPU\nskipped: q TestD: needs a GPU\n",
	} {
		var out strings.Builder
		r := newReport(&out, false)
		if err := r.read(strings.NewReader(eventLines)); err != nil {
			t.Fatal(err)
		}
		r.printSkips(each)
		if got := out.String(); got != printed+want {
			t.Errorf("printed\n%s\nwant\n%s", got, printed+want)
		}
	}
}

// A goroutine of TestB panics while TestA waits: neither gets an event of its own, only the package.
const crashLines = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: waits\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: logged\n"}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"panic: out of range\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.01s\n"}
{"Action":"fail","Package":"p","Elapsed":0.01}`

func TestReportPrintsTestsThatHaveNotEnded(t *testing.T) {
	var out strings.Builder
	if err := newReport(&out, false).read(strings.NewReader(crashLines)); err != nil {
		t.Fatal(err)
	}
	want := "--- NOT ENDED: TestA\n    a_test.go:3: waits\n--- NOT ENDED: TestB\npanic: out of range\nFAIL\tp\t0.01s\n"
	if got := out.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
