package spacefill

import "math"

// Error is the error of a prediction that was made before its measurement.
type Error struct {
	Off       float64 // ln of the measured over the predicted step time
	HalfWidth float64 // of the interval of ln T, above 0; only the ratios between errors count
}

// Strong is the Bayes factor of strong evidence. Source: Kass and Raftery, "Bayes Factors", Journal of the American
// Statistical Association 1995, section 3.2.
const Strong = 10

// leastErrors is the least number of errors that are evidence.
const leastErrors = 8

// Watch says from the errors so far whether points are to be chosen by distance. It begins with trust in the model. Strong
// evidence that the relative variances of the model predict its errors worse than one constant variance ends the trust.
// The points after that are judged by themselves: once they favour the model, at least the last 8 of them, it is trusted
// again. The zero value has no errors.
type Watch struct {
	Misled bool // choose by distance
	// Factor is the Bayes factor that ended the trust, Errors the number of errors it came from.
	Factor float64
	Errors int

	errors []Error // since Misled changed
}

// Add adds the error of the next point.
func (w *Watch) Add(e Error) {
	w.errors = append(w.errors, e)
	against, favour, ok := evidence(w.errors)
	switch {
	case !ok:
	case !w.Misled && against >= Strong:
		*w = Watch{Misled: true, Factor: against, Errors: len(w.errors)}
	case w.Misled && favour >= 1:
		*w = Watch{}
	}
}

// evidence returns the Bayes factor of errors, oldest first, for one constant variance and against the variances of the
// model, which are the squares of its half widths up to a common factor; and that for the model. Each is the mean, of B(n)
// and of 1/B(n), over the date since which the hypothesis is right, of all dates that leave n >= 8 errors:
//
//	B(n) = Π h(i) · (Σ e(i)²/h(i)² / Σ e(i)²)^(n/2), over the last n errors
//
//	e(i)  error of ln T
//	h(i)  half width
//
// Both hypotheses have normal errors and an unknown common factor k of the standard deviations, which is integrated out
// under the prior dk/k. So B(n) does not change if all intervals are too narrow, or all errors are larger, by one factor.
// Its expectation is 1 if the variances are right up to that factor: for any number of errors, the chance of strong
// evidence against them is then at most one in ten (Markov's inequality). The errors are predicted one after the other,
// each from the rows before it, so that their likelihoods multiply. Source: Dawid, "Present position and potential
// developments: some personal views. Statistical theory: the prequential approach", Journal of the Royal Statistical
// Society A 1984. ok is false without enough errors, or if all are 0.
func evidence(errors []Error) (against, favour float64, ok bool) {
	dates := 0
	logHalf, model, constant := 0.0, 0.0, 0.0
	for i := len(errors) - 1; i >= 0; i-- {
		e := errors[i]
		logHalf += math.Log(e.HalfWidth)
		model += (e.Off / e.HalfWidth) * (e.Off / e.HalfWidth)
		constant += e.Off * e.Off
		if n := len(errors) - i; n >= leastErrors && constant > 0 {
			b := logHalf + float64(n)/2*(math.Log(model)-math.Log(constant))
			against += math.Exp(min(b, 300)) // 300: no overflow
			favour += math.Exp(min(-b, 300))
			dates++
		}
	}
	n := float64(max(dates, 1))
	return against / n, favour / n, dates > 0
}
