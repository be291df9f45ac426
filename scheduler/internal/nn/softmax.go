package nn

import "math"

// Softmax writes the probabilities of the allowed actions to p:
//
//	p_i = exp(z_i) / sum of exp(z_k) over the allowed k; 0 for all others
//
// At least one action must be allowed. p may be z.
func Softmax(p, z []float32, allowed []bool) {
	most := float32(math.Inf(-1))
	for i, ok := range allowed {
		if ok && z[i] > most {
			most = z[i]
		}
	}
	sum := float32(0)
	for i, ok := range allowed {
		if !ok {
			p[i] = 0
			continue
		}
		p[i] = float32(math.Exp(float64(z[i] - most)))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
}

// CrossEntropy adds to dz the gradient of -weight * log p[action] by the inputs of the softmax:
//
//	d/dz_i = weight * (p_i - [i = action])
//
// The action must be allowed. With an advantage as the weight it is the loss of the policy gradient.
func CrossEntropy(p []float32, action int, weight float32, dz []float32) {
	for i, q := range p {
		dz[i] += weight * q
	}
	dz[action] -= weight
}

// AnyOf returns -weight * log(sum of p over the right actions), and adds to dz its gradient by the inputs of the
// softmax:
//
//	d/dz_i = weight * (p_i - [i is right] p_i / sum of p over the right actions)
//
// At least one right action must be allowed. The loss is indifferent between right actions.
func AnyOf(p []float32, right []bool, weight float32, dz []float32) float64 {
	sum := float32(tiny)
	for i, ok := range right {
		if ok {
			sum += p[i]
		}
	}
	for i, q := range p {
		dz[i] += weight * q
		if right[i] {
			dz[i] -= weight * q / sum
		}
	}
	return -float64(weight) * math.Log(float64(sum))
}

// Entropy returns H(p) = -sum of p_i log p_i, and adds to dz the gradient of -weight * H by the inputs of the softmax:
//
//	d/dz_i = weight * p_i * (log p_i + H)
func Entropy(p []float32, weight float32, dz []float32) float64 {
	h := 0.0
	for _, q := range p {
		if q > 0 {
			h -= float64(q) * math.Log(float64(q))
		}
	}
	for i, q := range p {
		if q > 0 {
			dz[i] += weight * q * float32(math.Log(float64(q))+h)
		}
	}
	return h
}

// tiny keeps logarithms of probabilities finite.
const tiny = 1e-30
