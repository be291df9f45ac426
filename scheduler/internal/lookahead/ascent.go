package lookahead

import "slices"

// ascent searches for the prices with the largest bound, by subgradient steps with momentum. A subgradient is the excess
// of devices used over devices available. The step length is a part of that which would close the gap to the best known
// schedule if the bound were linear (Held, Wolfe and Crowder, Validation of subgradient optimization, Mathematical
// Programming 6, 1974; Camerini, Fratta and Maffioli, On improving relaxation methods by modified gradient techniques,
// Mathematical Programming Study 3, 1975).
type ascent struct {
	*relaxed
	best    float64     // largest bound
	found   Prices      // its prices
	moves   [][]float64 // direction of each price by group and interval, in multiples of the available device-seconds
	ends    []float64   // direction of λ by task
	part    float64     // step length
	stalled int         // rounds without gain

	known bool      // it began at known prices
	gaps  []float64 // by round, the cost of the best known schedule less the bound
}

const (
	momentum = 0.7  // part of the last direction in the next
	patience = 4    // rounds without gain after which the step length is halved
	minPart  = 1e-4 // step length at which the ascent ends
	minGain  = 1e-4 // least part of the gap that counts as gain

	// An ascent from known prices begins with small steps. It ends when settledRounds rounds have closed less than the
	// part minSettled of the gap.
	knownPart     = 0.1
	settledRounds = 10
	minSettled    = 0.05
)

// newAscent begins at known prices. If there are none, prices of devices begin at 0, and half of Problem.End is divided
// among the tasks as λ.
func newAscent(r *relaxed, known Prices) *ascent {
	a := &ascent{relaxed: r, best: -inf, part: 1, ends: make([]float64, len(r.lambda)), found: Prices{Times: r.times, Ends: make([]float64, len(r.lambda))}}
	for g := range r.price {
		a.moves = append(a.moves, make([]float64, len(r.price[g])))
		a.found.Devices = append(a.found.Devices, make([]float64, len(r.price[g])))
	}
	if a.known = a.from(known); a.known {
		return a
	}
	for i := range r.lambda {
		r.lambda[i] = r.p.End / 2 / float64(len(r.lambda))
	}
	return a
}

// from sets the prices to the known ones, averaged on the grid. It reports false if these are 0, as they are when no task
// had to wait.
func (a *ascent) from(known Prices) (useful bool) {
	if len(known.Times) == 0 {
		return false
	}
	for g := range a.price {
		for i := range a.price[g] {
			a.price[g][i] = known.Mean(g, a.times[i], a.times[i+1])
			useful = useful || a.price[g][i] > 0
		}
	}
	if !useful {
		return false
	}
	a.part = knownPart
	copy(a.lambda, known.Ends)
	project(a.lambda, a.p.End)
	return true
}

// keep copies the present prices to found.
func (a *ascent) keep() {
	for g, price := range a.price {
		copy(a.found.Devices[g], price)
	}
	copy(a.found.Ends, a.lambda)
}

// isSettled reports whether an ascent from known prices has stopped gaining.
func (a *ascent) isSettled(upper float64) bool {
	a.gaps = append(a.gaps, upper-a.best)
	n := len(a.gaps) - 1
	return a.known && n >= settledRounds && a.gaps[n] > (1-minSettled)*a.gaps[n-settledRounds]
}

// round computes the bound at the present prices and moves them. upper is the cost of the best known schedule. It reports
// whether another round is worthwhile.
func (a *ascent) round(upper float64) bool {
	bound := a.bound()
	a.stalled++
	if bound > a.best {
		if !(bound <= a.best+minGain*(upper-a.best)) {
			a.stalled = 0
		}
		a.best = bound
		a.keep()
	}
	if a.stalled > patience {
		a.part /= 2
		a.stalled = 0
	}
	if a.part < minPart || a.best >= upper || a.isSettled(upper) {
		return false
	}
	last := a.last()
	size := a.turnPrices() + a.turnEnds(last)
	if size == 0 {
		return false
	}
	a.move(a.part*(upper-bound)/size, last)
	return true
}

// turnPrices sets the directions of prices and returns the sum of their squares.
func (a *ascent) turnPrices() (size float64) {
	for g, use := range a.use {
		if a.devices[g] == 0 {
			continue
		}
		for i, used := range use {
			available := a.devices[g] * (a.times[i+1] - a.times[i])
			move := used/available + momentum*a.moves[g][i]
			if i < a.until {
				move--
			}
			if a.price[g][i] == 0 {
				move = max(move, 0)
			}
			a.moves[g][i] = move
			size += move * move
		}
	}
	return size
}

// last returns the latest end of a pick.
func (a *ascent) last() float64 {
	last := 0.0
	for i := range a.picks {
		last = max(last, a.picks[i].end)
	}
	return last
}

// turnEnds sets the directions of λ and returns the weighted sum of their squares.
func (a *ascent) turnEnds(last float64) (size float64) {
	if a.p.End == 0 || last == 0 {
		return 0
	}
	for i := range a.picks {
		move := (a.picks[i].end-a.times[a.until])/last + momentum*a.ends[i]
		if a.lambda[i] == 0 {
			move = max(move, 0)
		}
		a.ends[i] = move
		size += a.weight() * move * move
	}
	return size
}

// weight is the weight of a direction of λ: the number of prices over that of λ, so that both count equally together.
func (a *ascent) weight() float64 {
	return float64(len(a.price)*(len(a.times)-1)) / float64(len(a.lambda))
}

// move moves prices and λ by a multiple of their directions.
func (a *ascent) move(by, last float64) {
	for g := range a.price {
		if a.devices[g] == 0 {
			continue
		}
		for i := range a.price[g] {
			available := a.devices[g] * (a.times[i+1] - a.times[i])
			a.price[g][i] = max(0, a.price[g][i]+by*a.moves[g][i]/available)
		}
	}
	if a.p.End == 0 || last == 0 {
		return
	}
	for i := range a.lambda {
		a.lambda[i] += by * a.weight() * a.ends[i] / last
	}
	project(a.lambda, a.p.End)
}

// project moves v to the nearest point with entries >= 0 that add up to at most sum.
func project(v []float64, sum float64) {
	positive := 0.0
	for i := range v {
		v[i] = max(0, v[i])
		positive += v[i]
	}
	if positive <= sum {
		return
	}
	s := slices.Clone(v)
	slices.Sort(s)
	total, shift := 0.0, 0.0
	for k := len(s) - 1; k >= 0; k-- {
		total += s[k]
		shift = (total - sum) / float64(len(s)-k)
		if k == 0 || s[k-1] <= shift {
			break
		}
	}
	for i := range v {
		v[i] = max(0, v[i]-shift)
	}
}
