package hook

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Timing is the step times of a program, all ranks together.
type Timing struct {
	Process            // of the lowest rank; its memory and HookSec are the largest over the ranks
	StepSec  []float64 // of the timed steps, each the mean over the ranks
	Began    time.Time // start of the first timed step
	Ended    time.Time // end of the last one
	Warnings []string
}

// maxSpread is the relative difference between the mean step times of two ranks above which they do not train
// together, unless the sums differ by less than two steps. Ranks that wait for each other are less than a step apart
// at the end of any step, but one may be the first before the timed steps and the other after them.
const maxSpread = 0.05

// Time returns the timed steps of the processes of a program on n devices: the steps after the first warmup ones, at
// most timed of them, 0 = all. A rank that several processes claim counts by the one that trained longest: programs
// that evaluate may train too. The mean over the ranks is taken, since a rank that is late at the end of one step is
// early in the next one.
func Time(all []Process, n, warmup, timed int) (Timing, error) {
	ranks, err := byRank(all, n)
	if err != nil {
		return Timing{}, err
	}
	have := math.MaxInt
	for _, p := range ranks {
		have = min(have, len(p.Steps))
	}
	warmup = max(warmup, 1) // the first step has no time
	if have <= warmup {
		return Timing{}, fmt.Errorf("hook: %s, want more than the %d of the warm-up", spec.Count(have, "training step"), warmup)
	}
	t := Timing{Process: *ranks[0]}
	last := have
	if timed > 0 {
		last = min(have, warmup+timed)
	}
	for i := warmup; i < last; i++ {
		sum := 0.0
		for _, p := range ranks {
			sum += p.Steps[i].Sec
		}
		if sum <= 0 {
			return Timing{}, fmt.Errorf("hook: step %d took %g s", i+1, sum)
		}
		t.StepSec = append(t.StepSec, sum/float64(len(ranks)))
	}
	steps := t.Steps
	t.Began, t.Ended = unixTime(steps[warmup-1].End), unixTime(steps[last-1].End)
	t.Warnings = append(t.compare(ranks, warmup, last), t.merge(ranks)...)
	return t, nil
}

// byRank returns the process of each of n ranks. Processes of jobs of another size are left out, unless one of them
// trained longest.
func byRank(all []Process, n int) ([]*Process, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("hook: 0 ranks stepped an optimizer, want %d; a command that sets PYTHONPATH must keep what it was", n)
	}
	longest := 0
	for i := range all {
		if all[i].trained() > all[longest].trained() {
			longest = i
		}
	}
	var ranks []*Process
	for i := range all {
		p := &all[i]
		if p.World != n {
			if world := all[longest].World; world != n {
				return nil, fmt.Errorf("hook: the job has %d ranks (WORLD_SIZE), want %d", world, n)
			}
			continue
		}
		if k := len(ranks); k > 0 && ranks[k-1].Rank == p.Rank {
			if p.trained() > ranks[k-1].trained() {
				ranks[k-1] = p
			}
			continue
		}
		ranks = append(ranks, p)
	}
	if len(ranks) != n {
		return nil, fmt.Errorf("hook: %d ranks stepped an optimizer, want %d", len(ranks), n)
	}
	return ranks, nil
}

// trained returns the seconds from the first step to the last one.
func (p *Process) trained() float64 {
	if len(p.Steps) == 0 {
		return 0
	}
	return p.Steps[len(p.Steps)-1].End - p.Steps[0].End
}

// merge takes the largest memory and time of the hook over the ranks, and returns the faults of all of them.
func (t *Timing) merge(ranks []*Process) (faults []string) {
	for _, p := range ranks {
		t.PeakBytes, t.ReservedBytes = max(t.PeakBytes, p.PeakBytes), max(t.ReservedBytes, p.ReservedBytes)
		t.HookSec = max(t.HookSec, p.HookSec)
		for _, f := range p.Faults {
			faults = append(faults, fmt.Sprintf("rank %d: the hook failed: %s", p.Rank, f))
		}
	}
	return faults
}

// compare warns of ranks that do not step together.
func (t *Timing) compare(ranks []*Process, warmup, last int) []string {
	means, longest := make([]float64, len(ranks)), 0.0
	for i, p := range ranks {
		for _, s := range p.Steps[warmup:last] {
			means[i] += s.Sec / float64(last-warmup)
			longest = max(longest, s.Sec)
		}
	}
	lo, hi := slices.Min(means), slices.Max(means)
	if hi-lo <= max(lo*maxSpread, 2*longest/float64(last-warmup)) {
		return nil
	}
	return []string{fmt.Sprintf("the ranks do not train together: mean step times from %.4g to %.4g s", lo, hi)}
}

// Share returns the CPU time of the hook as a fraction of the time of the steps, 0 if unknown.
func (t *Timing) Share() float64 {
	if n := len(t.Steps); n > 1 {
		if sec := t.Steps[n-1].End - t.Steps[0].End; sec > 0 {
			return t.HookSec / float64(n) / (sec / float64(n-1))
		}
	}
	return 0
}

func unixTime(sec float64) time.Time {
	whole, part := math.Modf(sec)
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}
