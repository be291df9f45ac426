package pollux

import (
	"fmt"
	"math"
)

// GradientNoiseScale returns the noise scale φ of a job's gradients, in samples, from the squared norm of its
// mean gradient and the trace of the gradient's covariance, both measured at the given batch size:
//
//	φ = batch · variance / squared norm
//
// At batches well below φ, a sample contributes as much progress as at the smallest batch (McCandlish et al.,
// "An Empirical Model of Large-Batch Training", 2018, equation 2.9). It is an error if batch or the norm is not
// positive, the variance is negative, or any of them is not finite.
func GradientNoiseScale(squaredNorm, variance, batch float64) (float64, error) {
	phi := batch * variance / squaredNorm
	if !(batch > 0) || !(squaredNorm > 0) || !(variance >= 0) || math.IsNaN(phi) || math.IsInf(phi, 0) {
		return 0, fmt.Errorf("pollux: no noise scale from a gradient of squared norm %g and variance %g at batch %g,"+
			" want finite values, norm and batch above 0", squaredNorm, variance, batch)
	}
	return phi, nil
}

// StatisticalEfficiency returns the progress per sample at a global batch relative to that at the initial batch
// (both in samples), for a noise scale φ as returned by GradientNoiseScale:
//
//	E = (φ + initial) / (φ + global)
//
// It is 1 at the initial batch and decreases towards 0 with the global batch, more slowly for noisier
// gradients. Source: Qiao et al., Pollux, OSDI 2021, section 3.1, equation 7. It is an error if a batch is not
// positive, global is below initial (the formula does not apply), or φ is negative.
func StatisticalEfficiency(globalBatch, initialBatch, noiseScale float64) (float64, error) {
	if !(initialBatch > 0) || !(globalBatch >= initialBatch) || !(noiseScale >= 0) || math.IsInf(globalBatch, 0) || math.IsInf(noiseScale, 0) {
		return 0, fmt.Errorf("pollux: no efficiency of global batch %g for initial batch %g and noise scale %g,"+
			" want finite values, global >= initial > 0, noise >= 0", globalBatch, initialBatch, noiseScale)
	}
	return (noiseScale + initialBatch) / (noiseScale + globalBatch), nil
}

// Goodput returns throughput (samples/s) times StatisticalEfficiency, that is samples/s with the progress of
// samples at the initial batch (Qiao et al., definition 3.1). Errors are those of StatisticalEfficiency, or
// report a throughput that is negative or not finite.
func Goodput(throughput, globalBatch, initialBatch, noiseScale float64) (float64, error) {
	e, err := StatisticalEfficiency(globalBatch, initialBatch, noiseScale)
	if err == nil && (!(throughput >= 0) || math.IsInf(throughput, 0)) {
		err = fmt.Errorf("pollux: throughput of %g samples/s, want 0 or more", throughput)
	}
	if err != nil {
		return 0, err
	}
	return throughput * e, nil
}
