package profiler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// nodes is a Runner that measures several points at a time. A point ends once enough others run, or no other can begin.
type nodes struct {
	want int // at the same time
	fail func(c spec.Config) error
	left []spec.Config // under way when the run begins

	mu            sync.Mutex
	begun         []spec.Config
	running, most int
}

func (n *nodes) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	n.mu.Lock()
	n.running++
	n.most = max(n.most, n.running)
	n.begun = append(n.begun, c)
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.running--
		n.mu.Unlock()
	}()
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		n.mu.Lock()
		full := n.most >= n.want
		n.mu.Unlock()
		if full {
			break
		}
	}
	if n.fail != nil {
		if err := n.fail(c); err != nil {
			return spec.Measurement{}, err
		}
	}
	t := law(c)
	return spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{t, t, t}, At: time.Now(), Env: map[string]string{EnvWall: "2"}}, ctx.Err()
}

func (n *nodes) UnderWay(_ context.Context, open []spec.Config) (out []spec.Config, _ error) {
	for _, c := range n.left {
		if slices.Contains(open, c) {
			out = append(out, c)
		}
	}
	return out, nil
}

// TestParallelMeasuresEachPointOnce: as many points as wanted run at a time, each once, in every order, and they are
// numbered without gaps.
func TestParallelMeasuresEachPointOnce(t *testing.T) {
	for _, order := range []Order{Adaptive, Random, Grid} {
		var sink memorySink
		o, _ := options(t, &sink)
		n := &nodes{want: 4}
		o.Runner, o.Parallel, o.Now = n, 4, nil
		c := smallCampaign(order)
		s, err := Run(context.Background(), c, o)
		if err != nil || s.Done != 36 || len(sink.rows) != 36 || n.most != 4 || s.Stopped != "every point is measured" {
			t.Errorf("%s: %d done, %d rows, %d at a time, %q, %v", order, s.Done, len(sink.rows), n.most, s.Stopped, err)
		}
		seen, numbers := map[Identity]bool{}, map[int]bool{}
		for _, m := range sink.rows {
			seen[IdentityOf(m.Config)], numbers[pointNumber(m)] = true, true
		}
		if len(seen) != 36 || len(numbers) != 36 || !numbers[1] || !numbers[36] {
			t.Errorf("%s: %d configurations with %d numbers", order, len(seen), len(numbers))
		}
	}
}

// TestParallelBudget: points under way count for the budget.
func TestParallelBudget(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	o.Runner, o.Parallel, o.Now = &nodes{want: 4}, 4, nil
	c := smallCampaign(Adaptive)
	c.Budget.Points = 10
	if s, err := Run(context.Background(), c, o); err != nil || s.Done != 10 || len(sink.rows) != 10 || s.Stopped != "budget spent: 10 points" {
		t.Errorf("%d rows, %+v, %v", len(sink.rows), s, err)
	}
}

// TestParallelResumes: points under way come first, and stored ones do not come again.
func TestParallelResumes(t *testing.T) {
	var sink memorySink
	o, _ := options(t, &sink)
	o.Parallel, o.Now = 3, nil
	boom := errors.New("boom")
	var mu sync.Mutex
	calls := 0
	o.Runner = &nodes{want: 3, fail: func(spec.Config) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls > 8 {
			return fmt.Errorf("node 7: %w", boom)
		}
		return nil
	}}
	c := smallCampaign(Random)
	s, err := Run(context.Background(), c, o)
	if !errors.Is(err, boom) || s.Stopped != "error" || len(sink.rows) < 6 || len(sink.rows) > 8 {
		t.Fatalf("%d rows, %+v, %v", len(sink.rows), s, err)
	}
	o.Rows = slices.Clone(sink.rows)
	points, _ := mustPoints(t, c, o.Machine)
	stored := map[Identity]bool{}
	for _, m := range o.Rows {
		stored[IdentityOf(m.Config)] = true
	}
	n := &nodes{want: 3}
	for _, p := range slices.Backward(points) {
		if !stored[IdentityOf(p.Config)] && len(n.left) < 2 {
			n.left = append(n.left, p.Config)
		}
	}
	o.Runner = n
	s, err = Run(context.Background(), c, o)
	if err != nil || s.Done != 36 || len(sink.rows) != 36 {
		t.Errorf("%d rows, %+v, %v", len(sink.rows), s, err)
	}
	for _, x := range n.left {
		if !slices.Contains(n.begun[:3], x) {
			t.Errorf("%s was under way and did not come first", x.Plan)
		}
	}
}

// TestOneAtATimeResumes: with one job at a time too, points under way come first. Kills of this process say nothing about
// a point that a cluster measures, so that none counts as an attempt.
func TestOneAtATimeResumes(t *testing.T) {
	for _, parallel := range []int{0, 1} {
		for _, order := range []Order{Adaptive, Random, Grid} {
			var sink memorySink
			o, _ := options(t, &sink)
			c := smallCampaign(order)
			points, _ := mustPoints(t, c, o.Machine)
			n := &nodes{want: 1, left: []spec.Config{points[len(points)-1].Config}}
			o.Runner, o.Parallel, o.Now = n, parallel, nil
			s, err := Run(t.Context(), c, o)
			if err != nil || s.Done != 36 || n.most != 1 {
				t.Errorf("%s, parallel %d: %d done, %d at a time, %v", order, parallel, s.Done, n.most, err)
			}
			if len(n.begun) != 36 || n.begun[0] != n.left[0] {
				t.Errorf("%s, parallel %d: %d points, the first is %s, want that under way: %s", order, parallel, len(n.begun), n.begun[0].Plan, n.left[0].Plan)
			}
			if r := (&run{o: o}); r.sinkJournal() != nil {
				t.Error("points of a cluster have a journal")
			}
		}
	}
}
