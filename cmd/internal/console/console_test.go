package console

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Control characters are quoted, characters cut by two writes are not.
func TestConsoleQuotes(t *testing.T) {
	for _, c := range []struct {
		json   bool
		writes []string
		want   string
	}{
		{false, []string{"plain\ttext\n"}, "plain\ttext\n"},
		{false, []string{"\x1b[31mred\r\a\x7f"}, `\x1b[31mred\x0d\x07\x7f`},
		{false, []string{"±½", "\xc2", "\xb5s"}, "±½µs"},
		{false, []string{"\u009b31m", "\x9b", "\xff"}, `\x9b31m\x9b\xff`},
		{false, []string{"cut \xe2\x82"}, `cut \xe2\x82`},
		{true, []string{"\"\u009b\x7f\""}, `"\u009b\u007f"`},
	} {
		var out bytes.Buffer
		o := New(&out, &bytes.Buffer{}, c.json)
		for _, w := range c.writes {
			if n, err := o.Out().Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%q: %d, %v", w, n, err)
			}
		}
		o.Finish()
		if out.String() != c.want {
			t.Errorf("%q gives %q, want %q", c.writes, out.String(), c.want)
		}
	}
}

// A long run prints its progress if asked to; Show replaces the text.
func TestConsoleProgress(t *testing.T) {
	var errs bytes.Buffer
	o := New(&bytes.Buffer{}, &errs, false)
	o.Start("curve", true)
	o.Show(func() string { return "half of \x1b it" })
	o.began = o.began.Add(-time.Minute)
	o.draw()
	o.Show(nil)
	o.draw()
	o.Finish()
	if got := errs.String(); got != "progress: half of \\x1b it, 60 s\n" {
		t.Errorf("%q", got)
	}
}

// The rest takes as long for each as those before took.
func TestCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		text := Counting("%d of %d jobs", 40, func() int { return n })
		for _, c := range []struct {
			done int
			want string
		}{{0, "0 of 40 jobs"}, {10, "10 of 40 jobs, about 1m0s left"}, {39, "39 of 40 jobs, about 1s left"}, {40, "40 of 40 jobs"}} {
			time.Sleep(10 * time.Second)
			if n = c.done; text() != c.want {
				t.Errorf("%q, want %q", text(), c.want)
			}
		}
	})
}
