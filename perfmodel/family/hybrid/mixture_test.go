package hybrid

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// TestWeigh compares the closed form with draws of the Bayesian bootstrap.
func TestWeigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		gain []float64
		rows int
		want float64 // without the bootstrap
	}{
		{"one row", []float64{1}, 1, 0.731},
		{"rows that agree", []float64{0.5, 0.5, 0.5, 0.5}, 4, 0.881},
		{"some of the rows", []float64{0.5, 0.5}, 4, 0.881},
		{"one row decides", []float64{-0.2, -0.2, -0.3, -0.2, -0.1, 4}, 6, 0.953},
		{"many rows", []float64{0.3, -0.5, 1, 0.4, 2, -0.3, 0.1, 0.4, 0.9, -0.6, 0.5, 0.2}, 12, 0.988},
	} {
		n, sum, once := float64(c.rows), 0.0, 0.0
		for _, g := range c.gain {
			once += g * n / float64(len(c.gain))
		}
		if plain := 1 / (1 + math.Exp(-once)); math.Abs(plain-c.want) > 1e-3 {
			t.Errorf("%s: %.3f without the bootstrap, want %g", c.name, plain, c.want)
		}
		const draws = 20_000
		for range draws {
			all, weighted := 0.0, 0.0
			for _, g := range c.gain {
				a := rng.ExpFloat64()
				all += a
				weighted += a * g
			}
			sum += 1 / (1 + math.Exp(-n*weighted/all))
		}
		got := weigh(c.gain, c.rows)
		if want := sum / draws; math.Abs(got-want) > 0.04 {
			t.Errorf("%s: weight %.3f, %.3f by draws", c.name, got, want)
		}
		floats.Scale(-1, c.gain)
		if sum := got + weigh(c.gain, c.rows); math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s: the weights of both forms add up to %g", c.name, sum)
		}
	}
}
