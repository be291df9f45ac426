package profiler

import (
	"context"
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// manyPoints returns a campaign with 8 keys of 64 points on 4 devices.
func manyPoints() Campaign {
	c := Campaign{Name: "many", Space: Space{
		Shapes:     []spec.Shape{spec.NewShape(1), spec.NewShape(2), spec.NewShape(4)},
		MicroBatch: []int{1, 2, 4, 8}, TP: []int{1, 2}, PP: []int{1, 2},
		Recompute: []spec.Recompute{spec.RecomputeNone, spec.RecomputeFull},
	}}
	for i := range 8 {
		c.Models = append(c.Models, tinyModel(fmt.Sprint("m", i), 4))
	}
	return c
}

// BenchmarkChoose measures the time between two points: adding a row and choosing the next point. Rows are the
// points measured before.
func BenchmarkChoose(b *testing.B) {
	for i := range 6 {
		name, rows := []string{"rubick", "hybrid"}[i%2], []int{0, 40, 160}[i/2]
		b.Run(fmt.Sprintf("%s/rows=%d", name, rows), func(b *testing.B) {
			o, l := options(b, &memorySink{})
			var err error
			if o.Family, err = family.Lookup(name); err != nil {
				b.Fatal(err)
			}
			o.Machine = cpuMachine(4)
			r, err := newRun(context.Background(), manyPoints(), o)
			if err != nil {
				b.Fatal(err)
			}
			step := func() {
				s, ok, err := r.next(context.Background())
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				m, _ := l.Run(context.Background(), s.Point.Config)
				m.Env = r.env(m.Env, r.number+1, s.Why, 5)
				r.add(m)
				if err := r.refit(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			for range rows {
				step()
			}
			for b.Loop() {
				b.StopTimer()
				saved, number := len(r.rows), r.number
				b.StartTimer()
				step()
				b.StopTimer()
				last := r.rows[saved]
				r.rows, r.number = r.rows[:saved], number
				delete(r.done, r.index[r.identity(last.Config)])
				k := r.byKey[last.Config.Key()]
				k.rows, k.usable, k.fresh = k.rows[:len(k.rows)-1], k.usable-1, false
				if err := r.refitGroup(context.Background(), k.fitGroup); err != nil {
					b.Fatal(err)
				}
				k.fresh = true
				b.StartTimer()
			}
			b.ReportMetric(float64(len(r.points)), "points")
		})
	}
}
