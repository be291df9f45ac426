package gp

import (
	"math/rand/v2"
	"testing"
)

// noiseOf returns the noise of a kernel chosen for 8 rows and some repeats. The rows have noise of standard deviation
// sd.
func noiseOf(t *testing.T, sd float64, repeats ...Repeats) float64 {
	t.Helper()
	at, e, extra := wavy(8)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range e {
		e[i] += sd * rng.NormFloat64()
	}
	r := &Process{At: at, Off: e, ExtraSD: extra, repeats: repeats}
	if err := r.choose(t.Context(), Untaught()); err != nil {
		t.Fatal(err)
	}
	return r.Kernel.Noise
}

// TestRepeatsShowNoise: repeats that scatter by 20 % raise the noise, and those that do not lower it. One of two runs
// that is off by a factor of ten counts little beside eight rows.
func TestRepeatsShowNoise(t *testing.T) {
	scattered := NewRepeats([]float64{0.8, 0.9, 1, 1.15, 1.3})
	if none, some := noiseOf(t, 0.2), noiseOf(t, 0.2, scattered, scattered); some < 2*none || some < 0.1 || some > 0.25 {
		t.Errorf("noise %.3f after 8 repeats that scatter by 0.2, %.3f without", some, none)
	}
	exact := NewRepeats([]float64{0.99, 1, 1, 1, 1.01})
	if none, some := noiseOf(t, 0.02), noiseOf(t, 0.02, exact, exact); some > 0.7*none {
		t.Errorf("noise %.3f after 8 repeats that scatter by 0.01, %.3f without", some, none)
	}
	if none, some := noiseOf(t, 0.02), noiseOf(t, 0.02, NewRepeats([]float64{1, 10})); some > 4*none {
		t.Errorf("noise %.3f after a wrong repeat, %.3f without", some, none)
	}
}
