package trainlog

import (
	"math"
	"regexp"
	"strings"
)

// bar matches a progress bar of tqdm: count, total, elapsed time, rate and its unit.
var bar = regexp.MustCompile(`\|\s*([0-9]+)/([0-9]+) \[([0-9:]+)<[0-9:?]+, +([0-9.]+)(it/s|s/it)`)

// barUnits are the units of its rate.
var barUnits = []string{"it/s", "s/it"}

// progress reads a progress bar; step and total count its units.
func progress(text string) (line Line, total int) {
	m := bar.FindStringSubmatch(text)
	if m == nil {
		return line, 0
	}
	rate := parse(m[4])
	if rate == 0 {
		return line, 0
	}
	line = Line{Step: int(min(parse(m[1]), maxCount)), bar: barRate{sec: rate, rounding: 0.005 / rate, elapsed: clock(m[3])}}
	if m[5] == "it/s" {
		line.bar.sec = 1 / rate
	}
	return line, int(min(parse(m[2]), maxCount))
}

// clock returns the seconds of "05:59" or "1:05:59".
func clock(text string) (sec float64) {
	for part := range strings.SplitSeq(text, ":") {
		sec = 60*sec + parse(part)
	}
	return sec
}

// maxBars is the largest number of totals with a bar of their own.
const maxBars = 64

// bar returns the log of the progress bar of a total. Beyond maxBars it is kept for no other line.
func (r *Reader) bar(total int) *Log {
	for _, b := range r.bars {
		if b.Total == total {
			return b
		}
	}
	b := &Log{Format: Trainer, Total: total}
	if len(r.bars) < maxBars {
		r.bars = append(r.bars, b)
	}
	return b
}

// trainerLog returns the log of Trainer with the lines of the progress bar that counts training steps: the one of as
// many steps as Trainer prints at its start or its end. Without these, it is the first one that ran at least half as
// long as the longest: bars of examples are shorter, and those of epochs and of evaluations come later.
func (r *Reader) trainerLog() (l Log, ok bool) {
	l = Log{Format: Trainer, Bare: true}
	if own := r.logs[Trainer]; own != nil {
		l, l.Bare = *own, false
	}
	longest := 0.0
	for _, b := range r.bars {
		longest = max(longest, b.ran)
	}
	for _, b := range r.bars {
		off := math.Abs(float64(b.Total - l.RunSteps))
		switch {
		case l.Total > 0 && b.Total != l.Total:
		case l.Total == 0 && l.RunSteps > 0 && off > 1+rateRounding*l.RunSec:
		case l.Total == 0 && l.RunSteps == 0 && b.ran < longest/2:
		default:
			l.Lines, l.Total = b.Lines, b.Total
			return l, true
		}
	}
	return l, l.RunSteps > 0
}

// rateRounding is the largest error of Trainer's train_steps_per_second, which has three decimal places.
const rateRounding = 0.0005

// barRate is what a progress bar shows, which is not the rate since the line before.
type barRate struct {
	sec      float64 // of a unit; 0: the line is of no bar
	rounding float64 // largest relative error of sec by its printed digits
	elapsed  float64 // whole seconds since the start
}

// smoothing is the weight of the last interval in the rate that tqdm shows by default, as Trainer's bar does.
// Lightning sets it to 0: its rate is the mean since the start.
const smoothing = 0.3

// mostRounding is the largest relative error of a step time by the printed digits.
const mostRounding = 0.01

// barLines returns the lines of progress bars with the mean seconds since the one before, of those from unit warmup
// on. The first has none. Lines that are too close together to tell are left out.
func (l *Log) barLines(warmup int) []Line {
	first := 0
	for first < len(l.Lines)-1 && l.Lines[first].Step < warmup {
		first++
	}
	at, errors := l.barTimes()
	out := []Line{l.Lines[first]}
	last := first
	for i := first + 1; i < len(l.Lines); i++ {
		since, off := at[i]-at[last], errors(last, i)
		end := i == len(l.Lines)-1 && len(out) == 1 // better than nothing
		if !(since > 0) || off > mostRounding*since && !end {
			continue
		}
		line := l.Lines[i]
		line.Sec = since / float64(line.Step-l.Lines[last].Step)
		out, last = append(out, line), i
	}
	return out
}

// barTimes returns the time of each line since the start, and the largest error of the time between two of them.
func (l *Log) barTimes() (at []float64, errors func(i, j int) float64) {
	if n := len(l.Lines); !l.Lines[0].At.IsZero() && !l.Lines[n-1].At.IsZero() {
		for i := range l.Lines {
			at = append(at, l.Lines[i].At.Sub(l.Lines[0].At).Seconds())
		}
		return at, func(int, int) float64 { return 0 }
	}
	smoothed, mean, whole := l.smoothedTimes(), make([]float64, len(l.Lines)), make([]float64, len(l.Lines))
	for i, line := range l.Lines {
		mean[i], whole[i] = float64(line.Step)*line.bar.sec, line.bar.elapsed+0.5
	}
	bySmoothed, byMean := l.disagreement(smoothed), l.disagreement(mean)
	switch {
	case min(bySmoothed, byMean) > 1:
		return whole, func(int, int) float64 { return 1 }
	case bySmoothed < byMean:
		return smoothed, func(i, j int) float64 {
			// Rounding errors of single lines, each 1/smoothing times as large at the ends.
			n := float64(j-i) + 2/(smoothing*smoothing)
			return l.Lines[j].bar.rounding * l.Lines[j].bar.sec * float64(l.Lines[j].Step-l.Lines[i].Step) / float64(j-i) * math.Sqrt(n/3)
		}
	}
	return mean, func(i, j int) float64 {
		return math.Hypot(l.Lines[j].bar.rounding*mean[j], l.Lines[i].bar.rounding*mean[i]) / math.Sqrt(3)
	}
}

// smoothedTimes inverts tqdm's smoothing: the rate is a mean over the intervals between lines, with weights that fall
// by 1-smoothing from each to the one before.
func (l *Log) smoothedTimes() []float64 {
	at := make([]float64, len(l.Lines))
	units, seconds, now, before := 0.0, 0.0, 0.0, 0
	if first := l.Lines[0]; len(l.Lines) > 1 && first.Step > l.Lines[1].Step-first.Step { // the start of the log is missing
		units = float64(l.Lines[1].Step-first.Step) * (1 - smoothing)
		seconds, now, before = units*first.bar.sec, first.bar.elapsed+0.5-first.bar.sec, first.Step-(l.Lines[1].Step-first.Step)
	}
	for i, line := range l.Lines {
		units = smoothing*float64(line.Step-before) + (1-smoothing)*units
		sum := units * line.bar.sec
		now += (sum - (1-smoothing)*seconds) / smoothing
		at[i], seconds, before = now, sum, line.Step
	}
	return at
}

// disagreement returns by how many seconds, or by how many hundredths if that is less, times contradict the elapsed
// time of the bar most. That is of whole seconds, rounded down.
func (l *Log) disagreement(at []float64) (most float64) {
	for i, line := range l.Lines {
		off := math.Abs(at[i] - min(max(at[i], line.bar.elapsed), line.bar.elapsed+1))
		most = max(most, min(off, off/(0.01*max(at[i], 1e-9))))
	}
	return most
}
