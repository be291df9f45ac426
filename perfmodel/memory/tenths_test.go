package memory

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// appendTenths writes what strconv does, also of ties and beside them.
func TestTenths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	same := func(v float64) {
		if got, want := string(appendTenths(nil, v)), strconv.FormatFloat(v, 'f', 1, 64); got != want {
			t.Fatalf("%v: %s, want %s", v, got, want)
		}
	}
	for range 200000 {
		same(math.Exp(40*rnd.Float64() - 12))
		tie := float64(rnd.IntN(1<<20))/10 + 0.05
		same(tie)
		same(math.Nextafter(tie, 0))
		same(math.Nextafter(tie, math.Inf(1)))
		same(float64(rnd.IntN(1<<20)) / 4)
	}
	for _, v := range []float64{0, math.Copysign(0, -1), -0.04, -1, 1e8, 1e300, math.Inf(1), math.Inf(-1), math.NaN()} {
		same(v)
	}
}
