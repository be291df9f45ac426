package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		o := newConsole(&out, &bytes.Buffer{}, c.json)
		for _, w := range c.writes {
			if n, err := o.out.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%q: %d, %v", w, n, err)
			}
		}
		o.finish()
		if out.String() != c.want {
			t.Errorf("%q gives %q, want %q", c.writes, out.String(), c.want)
		}
	}
}

// A run that takes long says how far it is, if that is wanted, and what it replaces.
func TestConsoleProgress(t *testing.T) {
	var errs bytes.Buffer
	o := newConsole(&bytes.Buffer{}, &errs, false)
	o.start("curve", true)
	o.show(func() string { return "half of \x1b it" })
	o.began = o.began.Add(-time.Minute)
	o.draw()
	o.show(nil)
	o.draw()
	o.finish()
	if got := errs.String(); got != "progress: half of \\x1b it, 60 s\n" {
		t.Errorf("%q", got)
	}
}

// cancelling is a writer that ends a context when it is given a text.
type cancelling struct {
	bytes.Buffer
	at     string
	cancel func()
}

func (w *cancelling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.at) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

// An interruption prints the policies that are done, and exits with 4.
func TestInterruptedSimulate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &cancelling{at: "simulate: fifo done", cancel: cancel}
	code := run(ctx, []string{"pacer", "simulate", "-w", "synthetic:jobs=40", "--cluster", "2x8", "-p", "fifo,las,srtf", "-o", "json"}, nil, &out, errs)
	var got struct{ Runs []struct{ Policy string } }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != exitPartial || len(got.Runs) != 1 || got.Runs[0].Policy != "fifo" {
		t.Errorf("exit code %d, %v: %s", code, err, out.String())
	}
	if !strings.Contains(errs.String(), `"message":"interrupted: simulate: 1 run of 3 done: `) {
		t.Error(errs.String())
	}
}

// An interruption prints the runs of a study that are done, and exits with 4.
func TestInterruptedSweep(t *testing.T) {
	dir := t.TempDir()
	study := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(study, []byte("name: s\nworkloads: synthetic:jobs=40\ncluster: 2x8\npolicies: [fifo, las, srtf]\nseeds: 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &cancelling{at: "2 of 24 runs", cancel: cancel}
	code := run(ctx, []string{"pacer", "sweep", study, "--out", filepath.Join(dir, "kept"), "-o", "json"}, nil, &out, errs)
	var got struct{ Runs, Failed int }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != exitPartial || got.Runs != 24 || got.Failed < 1 || got.Failed > 22 {
		t.Errorf("exit code %d, %v: %s\n%s", code, err, out.String(), errs.String())
	}
}
