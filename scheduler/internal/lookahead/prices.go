package lookahead

// Prices are what proves a bound: those of a device-second at each time, and of a second of each task's completion.
type Prices struct {
	Times   []float64   // s from now, ascending; there are none before the first and after the last; none = none are known
	Devices [][]float64 // by group, from each of Times to the next
	Ends    []float64   // by task; those that are not there are 0
}

// Later returns p as it is so many seconds later, of the same tasks.
func (p Prices) Later(seconds float64) Prices {
	times := make([]float64, len(p.Times))
	for i, t := range p.Times {
		times[i] = t - seconds
	}
	p.Times = times
	return p
}

// mean returns the mean price of a device-second of a group between two times.
func (p *Prices) mean(group int, from, to float64) float64 {
	if group >= len(p.Devices) {
		return 0
	}
	sum := 0.0
	for i, price := range p.Devices[group] {
		if overlap := min(to, p.Times[i+1]) - max(from, p.Times[i]); overlap > 0 {
			sum += price * overlap
		}
	}
	return sum / (to - from)
}
