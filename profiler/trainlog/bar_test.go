package trainlog

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// The logs of bars were printed by tqdm 4.64 as Trainer and Lightning use it: a first step of 3 s, then steps of
// about 0.13 s, with the median below. The last rates that they show are up to 40 % too slow.
const trainerMedian, lightningMedian = 0.13153, 0.13311

// TestBars: the time of a step by a progress bar is that between its lines, not the rate that it shows.
func TestBars(t *testing.T) {
	for _, c := range []struct {
		file   string
		ga     int
		cut    func(lines []string) []string // of the log
		most   float64                       // error
		median float64
		steps  int // of the values together
	}{
		{"trainer.log", 2, nil, 0.01, trainerMedian, 35},
		{"lightning.log", 1, nil, 0.02, lightningMedian, 49},
		{"lightning.log", 2, nil, 0.02, 2 * lightningMedian, 20},
		// Without the start, and only every third line, as some collectors keep them.
		{"trainer.log", 2, func(lines []string) []string { return lines[20:] }, 0.02, trainerMedian, 20},
		{"trainer.log", 2, func(lines []string) []string { return every(3, lines) }, 0.1, trainerMedian, 20},
	} {
		text := spectest.ReadFile(t, "testdata/"+c.file)
		lines := regexp.MustCompile("[\r\n]+").Split(string(text), -1)
		if c.cut != nil {
			lines = c.cut(lines)
		}
		l, err := Read(strings.NewReader(strings.Join(lines, "\r")), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Time(plan(1, 4, c.ga), 0, 5, 0)
		if sec := stats.Median(got.StepSec); err != nil || math.Abs(sec/c.median-1) > c.most || got.To-got.From < c.steps || len(got.Warnings) > 0 {
			t.Errorf("%s, %d micro-batches: %g s, want %g, of steps %d to %d in %d values, %v, %q", c.file, c.ga, sec, c.median, got.From, got.To, len(got.StepSec), err, got.Warnings)
		}
	}
}

func every(n int, lines []string) (out []string) {
	for chunk := range slices.Chunk(lines, n) {
		out = append(out, chunk[len(chunk)-1])
	}
	return out
}

// TestLiveBars: bars that are read as they are printed are timed by when they change, whatever rate they show.
func TestLiveBars(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := &Reader{Now: func() time.Time { return now }}
	for i := range 20 {
		_, _ = r.Write([]byte("\r"))
		_, _ = r.Write([]byte("  5%|#   | " + strconv.Itoa(i) + "/20 [00:03<01:57,  3.00s/it]"))
		now = now.Add(250 * time.Millisecond)
	}
	l, ok := r.Log("")
	got, err := l.Time(plan(1, 1, 1), 0, 3, 0)
	if !ok || err != nil || len(got.StepSec) != 16 || slices.ContainsFunc(got.StepSec, func(s float64) bool { return math.Abs(s-0.25) > 1e-6 }) || got.From != 3 || got.To != 19 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLongBars: where only the elapsed time can be trusted, long intervals are timed by it.
func TestLongBars(t *testing.T) {
	var text strings.Builder
	for i := 1; i <= 1000; i++ {
		text.WriteString("\r 5%|#   | " + strconv.Itoa(i) + "/1000 [" + strconv.Itoa(i/60) + ":" + strconv.Itoa(i%60) + "<00:00,  9.99s/it]")
	}
	l, err := Read(strings.NewReader(text.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Time(plan(1, 1, 1), 0, 5, 0)
	if err != nil || len(got.StepSec) < 5 || math.Abs(stats.Median(got.StepSec)-1) > 0.011 {
		t.Errorf("%+v, %v; want steps of 1 s", got, err)
	}
}

// writeBar writes a progress bar of a total that takes some seconds.
func writeBar(text *strings.Builder, total, sec int) {
	for i := 1; i <= total; i++ {
		at := i * sec / total
		fmt.Fprintf(text, "\r 5%%|#   | %d/%d [%02d:%02d<00:00, %.2fit/s]", i, total, at/60, at%60, float64(total)/float64(sec))
	}
	text.WriteString("\n")
}

// TestOtherBars: bars of examples, epochs and evaluations are none of training steps.
func TestOtherBars(t *testing.T) {
	for name, c := range map[string]struct {
		write func(*strings.Builder)
		total int
	}{
		"examples first": {func(text *strings.Builder) { writeBar(text, 3000, 3); writeBar(text, 200, 100); writeBar(text, 50, 5) }, 200},
		"evaluations":    {func(text *strings.Builder) { writeBar(text, 100, 60); writeBar(text, 30, 40); writeBar(text, 30, 40) }, 100},
		"outer of epochs": {func(text *strings.Builder) {
			for range 3 {
				writeBar(text, 100, 60)
			}
			writeBar(text, 3, 180)
		}, 100},
		"rounded rate": {func(text *strings.Builder) {
			writeBar(text, 500, 100)
			writeBar(text, 190, 60)
			text.WriteString("{'train_runtime': 36000.0, 'train_samples_per_second': 0.041, 'train_steps_per_second': 0.005, 'epoch': 1.0}\n")
		}, 190},
		"known at the end": {func(text *strings.Builder) {
			writeBar(text, 500, 100)
			writeBar(text, 200, 60)
			text.WriteString("{'train_runtime': 60.2, 'train_samples_per_second': 13.29, 'train_steps_per_second': 3.322, 'epoch': 1.0}\n")
		}, 200},
		"known at the start": {func(text *strings.Builder) {
			text.WriteString("  Total optimization steps = 200\n")
			writeBar(text, 500, 100)
			writeBar(text, 200, 60)
		}, 200},
		"diffusers": {func(text *strings.Builder) {
			var steps strings.Builder
			writeBar(&steps, 200, 60)
			text.WriteString(strings.ReplaceAll(steps.String(), "\r", "\rSteps: "))
		}, 200},
	} {
		var text strings.Builder
		c.write(&text)
		if l, err := Read(strings.NewReader(text.String()), ""); err != nil || l.Total != c.total || l.Lines[len(l.Lines)-1].Step != c.total {
			t.Errorf("%s: %d lines of %d steps, %v, want %d", name, len(l.Lines), l.Total, err, c.total)
		}
	}
}

// TestManyBars: bars of very many totals take bounded memory.
func TestManyBars(t *testing.T) {
	var r Reader
	for total := 2; total < 10*maxBars; total++ {
		fmt.Fprintf(&r, "\r 5%%|#   | 1/%d [00:01<00:00, 1.00it/s]\n", total)
	}
	if len(r.bars) > maxBars {
		t.Errorf("%d bars are kept, want at most %d", len(r.bars), maxBars)
	}
}

// TestSmallerBatch: a batch that did not fit, which Trainer's auto_find_batch_size halves, is not that of the training. The
// settings of a second training in the log are not, either.
func TestSmallerBatch(t *testing.T) {
	settings := func(text *strings.Builder, batch int) {
		fmt.Fprintf(text, "***** Running training *****\n  Instantaneous batch size per device = %d\n  Total train batch size (w. parallel, distributed & accumulation) = %d\n"+
			"  Total optimization steps = 100\n\r  0%%|          | 0/100 [00:00<?, ?it/s]\n", batch, batch)
	}
	var text strings.Builder
	settings(&text, 16)
	settings(&text, 8)
	writeBar(&text, 100, 50)
	settings(&text, 4)
	writeBar(&text, 100, 30)
	l, err := Read(strings.NewReader(text.String()), "")
	if err != nil || l.GlobalBatch != 8 || l.MicroBatch != 8 || len(l.Lines) != 100 {
		t.Errorf("%d samples per step, %d per micro-batch, %d lines, %v; want 8, 8, 100", l.GlobalBatch, l.MicroBatch, len(l.Lines), err)
	}
}
