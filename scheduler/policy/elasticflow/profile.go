package elasticflow

import "slices"

// profile is the free devices of a group over the future: free[k] from at[k] on, until the
// next; the last for ever. Times are seconds from now, ascending from 0.
type profile struct {
	at   []float64
	free []int
}

func newProfile(devices int) *profile { return &profile{[]float64{0}, []int{devices}} }

func (p *profile) clone() *profile { return &profile{slices.Clone(p.at), slices.Clone(p.free)} }

// add adds n devices from one time to another.
func (p *profile) add(from, to float64, n int) {
	if from >= to || n == 0 {
		return
	}
	first, last := p.split(from), p.split(to)
	for k := first; k < last; k++ {
		p.free[k] += n
	}
}

// split makes t the begin of a part of the profile and returns its index.
func (p *profile) split(t float64) int {
	k, ok := slices.BinarySearch(p.at, t)
	if !ok {
		p.at = slices.Insert(p.at, k, t)
		p.free = slices.Insert(p.free, k, p.free[k-1])
	}
	return k
}

// addPlan gives back the devices of a plan, or takes them with sign -1.
func (p *profile) addPlan(m *demand, pl *plan, sign int) {
	for _, part := range pl.parts {
		if part.cell >= 0 {
			p.add(part.from, part.to, sign*m.Cells[part.cell].Devices)
		}
	}
}
