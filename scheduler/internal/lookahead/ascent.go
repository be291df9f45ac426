package lookahead

import "slices"

// ascent looks for the prices that prove most. Each round moves them along what is used more than there is, mixed with
// the moves before it, by a part of the way that would close the gap to a known plan if the bound were linear (Held,
// Wolfe and Crowder, Validation of subgradient optimization, Mathematical Programming 6, 1974; Camerini, Fratta and
// Maffioli, On improving relaxation methods by modified gradient techniques, Mathematical Programming Study 3, 1975).
type ascent struct {
	*relaxed
	best  float64     // bound
	found Prices      // those that prove it
	moves [][]float64 // by group and interval, of the price in parts of what is there
	ends  []float64   // by task, moves of λ
	part  float64     // of the way
	vain  int         // rounds since the bound rose

	known bool      // it began at known prices
	gaps  []float64 // by round, what was left between the bound and the cost of the best known plan
}

const (
	memory      = 0.7  // part of the moves before that goes into a move
	patience    = 4    // rounds without gain after which moves are halved
	leastPart   = 1e-4 // where they end
	leastGained = 1e-4 // part of the gap that counts as gain

	// Prices that are known are near the best: moves begin small, and there are no more once this many have closed no more
	// than such a part of the gap.
	knownPart    = 0.1
	settled      = 10
	leastSettled = 0.05
)

// newAscent begins at the prices known. Without any there are none of devices, and half of the weight of the end is
// shared among all as λ.
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

// from sets the prices to those known, on the grid, and reports whether they say anything: when nobody had to wait all
// are 0.
func (a *ascent) from(known Prices) (says bool) {
	if len(known.Times) == 0 {
		return false
	}
	for g := range a.price {
		for i := range a.price[g] {
			a.price[g][i] = known.mean(g, a.times[i], a.times[i+1])
			says = says || a.price[g][i] > 0
		}
	}
	if !says {
		return false
	}
	a.part = knownPart
	copy(a.lambda, known.Ends)
	project(a.lambda, a.p.End)
	return true
}

// keep notes the present prices as those that prove the best bound.
func (a *ascent) keep() {
	for g, price := range a.price {
		copy(a.found.Devices[g], price)
	}
	copy(a.found.Ends, a.lambda)
}

// isSettled reports whether prices that were known get no better.
func (a *ascent) isSettled(upper float64) bool {
	a.gaps = append(a.gaps, upper-a.best)
	n := len(a.gaps) - 1
	return a.known && n >= settled && a.gaps[n] > (1-leastSettled)*a.gaps[n-settled]
}

// round finds the bound at the present prices and moves them; upper is what the best known plan costs. It reports
// whether another is worthwhile.
func (a *ascent) round(upper float64) bool {
	bound := a.bound()
	a.vain++
	if bound > a.best {
		if !(bound <= a.best+leastGained*(upper-a.best)) {
			a.vain = 0
		}
		a.best = bound
		a.keep()
	}
	if a.vain > patience {
		a.part /= 2
		a.vain = 0
	}
	if a.part < leastPart || a.best >= upper || a.isSettled(upper) {
		return false
	}
	last := a.last()
	size := a.turn() + a.turnEnds(last)
	if size == 0 {
		return false
	}
	a.move(a.part*(upper-bound)/size, last)
	return true
}

// turn sets the moves of prices and returns the sum of their squares.
func (a *ascent) turn() (size float64) {
	for g, use := range a.use {
		if a.devices[g] == 0 {
			continue
		}
		for i, used := range use {
			there := a.devices[g] * (a.times[i+1] - a.times[i])
			move := used/there + memory*a.moves[g][i]
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

// last returns when the last pick ends.
func (a *ascent) last() float64 {
	last := 0.0
	for i := range a.picks {
		last = max(last, a.picks[i].end)
	}
	return last
}

// turnEnds sets the moves of λ and returns the sum of their squares, which count as much together as those of prices.
func (a *ascent) turnEnds(last float64) (size float64) {
	if a.p.End == 0 || last == 0 {
		return 0
	}
	for i := range a.picks {
		move := (a.picks[i].end-a.times[a.until])/last + memory*a.ends[i]
		if a.lambda[i] == 0 {
			move = max(move, 0)
		}
		a.ends[i] = move
		size += a.weight() * move * move
	}
	return size
}

// weight is how much a move of a λ counts beside one of a price: as the number of these to that of those.
func (a *ascent) weight() float64 {
	return float64(len(a.price)*(len(a.times)-1)) / float64(len(a.lambda))
}

// move moves prices and λ.
func (a *ascent) move(by, last float64) {
	for g := range a.price {
		if a.devices[g] == 0 {
			continue
		}
		for i := range a.price[g] {
			there := a.devices[g] * (a.times[i+1] - a.times[i])
			a.price[g][i] = max(0, a.price[g][i]+by*a.moves[g][i]/there)
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

// project moves v to the nearest point whose entries are at least 0 and add up to no more than sum.
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
