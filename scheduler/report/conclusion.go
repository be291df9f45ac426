package report

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// conclusion returns the first sentences of a page: which policy has the least mean JCT,
// and its ratio to the first policy, the baseline, with the 95 % interval over the jobs
// that finish under both. If some policy leaves jobs unfinished, the text says that means
// do not compare. It is empty for fewer than two runs or if no job of the first finished.
func conclusion(results []*sim.Result, runs []Summary, score Score) string {
	if len(runs) < 2 || !runs[0].AvgJCT.Defined() {
		return ""
	}
	for _, s := range runs {
		if s.Finished != runs[0].Finished {
			return "Not all jobs finish under every policy, so mean completion times do not compare. The table has the number of finished jobs."
		}
	}
	best := 0
	for i, s := range runs {
		if s.AvgJCT.Defined() && s.AvgJCT < runs[best].AvgJCT {
			best = i
		}
	}
	text := fmt.Sprintf("%s has the lowest mean job completion time, %s.", runs[best].Policy, Human(runs[best].AvgJCT))
	if best == 0 {
		best = second(runs)
		text += fmt.Sprintf(" The next, that of %s, is", runs[best].Policy)
	} else {
		text += " It is"
	}
	ratio := jctRatio(results[best], results[0], score)
	text += fmt.Sprintf(" %s times that of the baseline %s", ratio.Mean.Fixed(3), runs[0].Policy)
	if ratio.Lo.Defined() && ratio.Hi.Defined() {
		text += fmt.Sprintf(" (95 %% interval %s to %s, over the jobs of this run)", ratio.Lo.Fixed(3), ratio.Hi.Fixed(3))
	}
	return text + "."
}

// second returns the run with the least mean JCT after the first run.
func second(runs []Summary) int {
	best := 1
	for i, s := range runs[1:] {
		if s.AvgJCT.Defined() && !(runs[best].AvgJCT <= s.AvgJCT) {
			best = i + 1
		}
	}
	return best
}

// jctRatio returns the ratio of the mean JCTs of a and b over the jobs that count and
// finish under both.
func jctRatio(a, b *sim.Result, score Score) Interval {
	jct := map[spec.JobID]float64{}
	for _, j := range b.Jobs {
		if j.Finished && score.Has(j.Job.ID) {
			jct[j.Job.ID] = j.JCT().Seconds()
		}
	}
	var x, y []float64
	for _, j := range a.Jobs {
		if base, ok := jct[j.Job.ID]; ok && j.Finished {
			x, y = append(x, j.JCT().Seconds()), append(y, base)
		}
	}
	return RatioT(y, x, 0.95)
}
