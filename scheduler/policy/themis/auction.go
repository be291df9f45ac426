package themis

import "math"

// lot is the bid of one bidder: all its devices or none.
type lot struct {
	devices int
	gain    float64 // logarithm of (value with the devices / value without), above 0
}

// award is the outcome of an auction for one bidder.
type award struct {
	won bool
	// keeps is the fraction in (0, 1] of the lot that is left after the hidden payment.
	keeps float64
}

// partialAllocation auctions devices by the partial allocation mechanism. The winners
// maximise the product of all valuations. Winner i keeps the fraction
//
//	c_i = prod over j != i of v_j(with i present) / v_j(without i)
//
// of its lot, which makes truthful bidding optimal. Differs: a bidder needs its whole lot,
// so the product is over the winners, and c_i is a fraction of the lease time.
//
// Source: Cole, Gkatzelis and Goel, Mechanism design for fair division, EC 2013;
// Mahajan et al., Themis, NSDI 2020, section 5.1.
func partialAllocation(devices int, lots []lot) []award {
	first := tables(devices, lots, false)
	last := tables(devices, lots, true)
	out := make([]award, len(lots))
	total := first[len(lots)][devices]
	room := devices
	for i := len(lots) - 1; i >= 0; i-- {
		if first[i+1][room] == first[i][room] {
			continue
		}
		room -= lots[i].devices
		without := math.Inf(-1)
		for c := range devices + 1 {
			without = max(without, first[i][c]+last[i+1][devices-c])
		}
		out[i] = award{won: true, keeps: min(math.Exp(total-lots[i].gain-without), 1)}
	}
	return out
}

// tables returns the highest sum of gains for every number of devices: row i is for the
// first i lots or, backwards, for lots i and later.
func tables(devices int, lots []lot, backwards bool) [][]float64 {
	rows := make([][]float64, len(lots)+1)
	for k := range rows {
		rows[k] = make([]float64, devices+1)
	}
	for k := range lots {
		from, to, l := rows[k], rows[k+1], lots[k]
		if backwards {
			i := len(lots) - 1 - k
			from, to, l = rows[i+1], rows[i], lots[i]
		}
		copy(to, from)
		for c := l.devices; c <= devices; c++ {
			to[c] = max(to[c], from[c-l.devices]+l.gain)
		}
	}
	return rows
}
