package lookahead

// Prices proves a bound: prices of a device-second over time, and of a second of each task's completion time.
type Prices struct {
	Times   []float64   // seconds from now, ascending; prices outside are 0; empty = unknown prices
	Devices [][]float64 // by group, from each of Times to the next
	Ends    []float64   // by task; missing ones are 0
}

// Later returns p with times counted from some seconds later. It shares Devices and Ends with p.
func (p Prices) Later(seconds float64) Prices {
	times := make([]float64, len(p.Times))
	for i, t := range p.Times {
		times[i] = t - seconds
	}
	p.Times = times
	return p
}

// Mean returns the mean price of a device-second of a group between two times.
func (p *Prices) Mean(group int, from, to float64) float64 {
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
