package family

import (
	"context"
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// gainGrid is n plans of the toy job type, of batches the grid of the other tests
// has not.
func gainGrid(n int) []spec.Config {
	var out []spec.Config
	for batch := 1; len(out) < n; batch++ {
		for _, c := range toyGrid() {
			c.Plan.MicroBatch *= batch
			out = append(out, c)
		}
	}
	return out[:n]
}

func BenchmarkRubickGain(b *testing.B) {
	for _, n := range []int{160, 500} {
		for _, rows := range []int{0, 4, 12, 30} {
			space := gainGrid(n)
			have := toyRows(space[:rows])
			b.Run(fmt.Sprintf("space=%d/rows=%d", n, rows), func(b *testing.B) {
				for b.Loop() {
					if _, err := gainRubick(context.Background(), have, space); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
