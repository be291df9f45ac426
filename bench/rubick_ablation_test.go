package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// fitRubickDrawn is fitRubick on other rows for every seed: it fits at most 8 of 16 drawn
// configurations per model.
func fitRubickDrawn(tb testing.TB, seed uint64) fitted {
	tb.Helper()
	f := mustFamily(tb, "rubick")
	out := fitted{}
	for key, rows := range perfmodel.GroupByKey(importAll(tb, "rubick")) {
		rows = drawRows(rows, key, seed)
		m, _, err := perfmodel.FitKey(context.Background(), f, rows, perfmodel.FitOptions{MaxRows: 8})
		if err != nil {
			tb.Fatalf("%s, seed %d: %v", key, seed, err)
		}
		out[key] = m
	}
	return out
}

// drawRows returns 16 of the usable rows, all if there are fewer.
func drawRows(rows []spec.Measurement, key spec.Key, seed uint64) (drawn []spec.Measurement) {
	for _, r := range rows {
		if perfmodel.Usable(r) {
			drawn = append(drawn, r)
		}
	}
	rng := rand.New(rand.NewPCG(seed, uint64(len(key.Model))))
	rng.Shuffle(len(drawn), func(i, k int) { drawn[i], drawn[k] = drawn[k], drawn[i] })
	return drawn[:min(len(drawn), 16)]
}

// TestRubickAblations runs rubick, and rubick without the choice of plans, of resources, and of
// both, on Rubick's traces. Every seed fits other rows, at most 8 per model. All policies but
// fifo-backfill know the remaining steps; optimus observes losses with 2 % noise instead. If
// PACER_OUT names a directory, the table and the picture of docs/benchmarks/rubick-parts.md are
// written there, with other policies.
func TestRubickAblations(t *testing.T) {
	b := newTestbed(t)
	s := study.Study{
		Name: "rubick-ablations", Workloads: []study.Workload{{Name: "base"}, {Name: "bp"}, {Name: "mt"}}, Seeds: []uint64{0, 1, 2, 3, 4},
		Confidence: 0.95, Baseline: "fifo-backfill, perfect belief", Schedulers: []study.Scheduler{{Name: "fifo-backfill, perfect belief", Policy: "fifo-backfill"}},
	}
	names := []string{"rubick-n", "rubick-e", "rubick-r", "rubick"}
	dir := os.Getenv("PACER_OUT")
	if dir != "" {
		names = append(names, "fifo-backfill", "optimus-oracle", "optimus", "sia", "pacer")
	}
	for _, name := range names {
		s.Schedulers = append(s.Schedulers, study.Scheduler{Name: name, Policy: name})
	}
	var beliefs []fitted
	for _, seed := range s.Seeds {
		beliefs = append(beliefs, fitRubickDrawn(t, seed))
	}
	var outcomes []study.Outcome
	for _, c := range s.Cells() {
		var belief perfmodel.Predictor = beliefs[c.Seed]
		if s.Schedulers[c.Scheduler].Name == s.Baseline {
			belief = b.truth
		}
		jobs := b.jobs(t, s.Workloads[c.Workload].Name, 1)
		k := study.NewRecord(b.runSeed(t, s.Schedulers[c.Scheduler].Policy, jobs, belief, c.Seed), report.Score{})
		if k.Summary.Finished != len(jobs) {
			t.Errorf("%s: %d of %d jobs finished", s.Describe(c), k.Summary.Finished, len(jobs))
		}
		outcomes = append(outcomes, study.Outcome{Cell: c, Record: k})
	}
	rows := s.Rows(outcomes)
	t.Logf("\n%s", s.Markdown(rows))
	for i, r := range rows {
		if r.Workload != "mt" && r.Scheduler == "rubick" {
			checkRubick(t, r)
			for part := i - 3; part < i; part++ {
				n := len(s.Seeds)
				checkAhead(t, r.Workload+", "+rows[part].Scheduler, outcomes[n*part:n*(part+1)], outcomes[n*i:n*(i+1)])
			}
		}
	}
	if dir != "" {
		write(t, dir, &s, rows)
	}
}

// checkRubick compares rubick on base and bp with its targets.
func checkRubick(t *testing.T, r study.Row) {
	t.Helper()
	if restarts := float64(r.Restarts) / float64(r.Jobs); r.AvgJCT.Mean > 2500 || r.Makespan.Mean > 68000 || restarts > 0.5 {
		t.Errorf("rubick on %s: %.0f s, %.0f s, %.2f restarts per job, want at most 2500, 68,000 and 0.5", r.Workload, float64(r.AvgJCT.Mean), float64(r.Makespan.Mean), restarts)
	}
}

// checkAhead requires that the whole policy is better than a part of it in mean completion time and
// makespan, with 95 % confidence.
func checkAhead(t *testing.T, name string, part, whole []study.Outcome) {
	t.Helper()
	var jct, span [2][]float64
	for i, of := range [2][]study.Outcome{part, whole} {
		for _, o := range of {
			jct[i], span[i] = append(jct[i], float64(o.Record.Summary.AvgJCT)), append(span[i], float64(o.Record.Summary.Makespan))
		}
	}
	j, m := report.RatioT(jct[0], jct[1], 0.95), report.RatioT(span[0], span[1], 0.95)
	text := fmt.Sprintf("%s: of it rubick has %.2f (%.2f to %.2f) of the mean completion time, %.2f (%.2f to %.2f) of the makespan", name, j.Mean, j.Lo, j.Hi, m.Mean, m.Lo, m.Hi)
	t.Log(text)
	if !(j.Hi < 1 && m.Hi < 1) {
		t.Errorf("%s, want less with 95 %% confidence", text)
	}
}

// write writes the table and the picture of a study into a directory.
func write(t *testing.T, dir string, s *study.Study, rows []study.Row) {
	t.Helper()
	var svg bytes.Buffer
	err := s.WriteSVG(&svg, rows)
	for name, text := range map[string][]byte{s.Name + ".md": []byte(s.Markdown(rows)), s.Name + ".svg": svg.Bytes()} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}
