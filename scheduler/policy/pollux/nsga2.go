package pollux

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// search returns the fittest schedule it finds, the first of equals and the present one
// before others, and the schedules of the last population that no other dominates.
//
// Source: Deb, Pratap, Agarwal and Meyarivan, "A fast and elitist multiobjective genetic
// algorithm: NSGA-II", 2002: fronts of schedules that no schedule of a later front
// dominates, crowding distance within a front, binary tournaments.
func (pr *problem) search(rng *rand.Rand) (best *schedule, front []*schedule) {
	size := max(len(pr.jobs)*len(pr.room), smallSearch)
	most, generations := max(min(pr.population, size), 2), min(pr.generations, size)
	pop := pr.start(rng)
	seen := map[uint64]bool{}
	for _, sc := range pop {
		seen[sc.hash] = true
	}
	pop = survive(pop, most)
	best = fittest(pop)
	for generation, since := 0, 0; generation < generations && (pr.stall == 0 || since < pr.stall); generation++ {
		children := pr.breed(pop, most, seen, rng)
		if len(children) == 0 || pr.err != nil {
			break
		}
		pop = survive(append(pop, children...), most)
		since++
		if sc := fittest(pop); sc.fitness > best.fitness {
			best, since = sc, 0
		}
		clear(seen)
		for _, sc := range pop {
			seen[sc.hash] = true
		}
	}
	for _, sc := range pop {
		if sc.rank == 0 {
			front = append(front, sc)
		}
	}
	return best, front
}

// smallSearch is the least bound on schedules and generations: a search over few jobs and
// nodes needs no more.
const smallSearch = 16

// start returns the first population: the present schedule and the best of the last search.
func (pr *problem) start(rng *rand.Rand) []*schedule {
	index := map[int]int{}
	for i, j := range pr.jobs {
		index[j.Order] = i
	}
	pop := []*schedule{pr.base}
	seen := map[uint64]bool{pr.base.hash: true}
	for _, saved := range pr.front {
		sc := &schedule{rows: make([]*row, len(pr.jobs))}
		for i, j := range pr.jobs {
			sc.rows[i] = j.none
		}
		for _, r := range saved {
			if i, ok := index[r.job]; ok {
				sc.rows[i] = pr.raw(pr.jobs[i], r.cells)
			}
		}
		pr.repair(sc, rng)
		pr.evaluate(sc)
		if !seen[sc.hash] {
			seen[sc.hash] = true
			pop = append(pop, sc)
		}
	}
	return pop
}

// breed returns at most n new schedules by crossover and mutation of the winners of
// tournaments. It gives up after a few attempts without a new one.
func (pr *problem) breed(pop []*schedule, n int, seen map[uint64]bool, rng *rand.Rand) (out []*schedule) {
	const attempts = 20
	for idle := 0; len(out) < n && idle < attempts; {
		idle++
		for _, sc := range cross(tournament(pop, rng), tournament(pop, rng), rng) {
			pr.mutate(sc, rng)
			pr.repair(sc, rng)
			pr.evaluate(sc)
			if !seen[sc.hash] {
				seen[sc.hash] = true
				out, idle = append(out, sc), 0
			}
		}
	}
	return out
}

// tournament returns the better of two random schedules: of the lower front, else the less
// crowded.
func tournament(pop []*schedule, rng *rand.Rand) *schedule {
	a, b := pop[rng.IntN(len(pop))], pop[rng.IntN(len(pop))]
	if cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.crowding, a.crowding)) > 0 {
		return b
	}
	return a
}

// fittest returns the schedule of highest fitness, the first of equals.
func fittest(pop []*schedule) *schedule {
	best := pop[0]
	for _, sc := range pop {
		if sc.fitness > best.fitness {
			best = sc
		}
	}
	return best
}

// survive returns the schedules of the first fronts, at most n, and of the last of these
// fronts the least crowded. It sets rank and crowding.
func survive(pop []*schedule, n int) []*schedule {
	out := make([]*schedule, 0, n)
	for _, f := range fronts(pop) {
		crowd(f)
		if room := n - len(out); len(f) > room {
			slices.SortStableFunc(f, func(a, b *schedule) int { return cmp.Compare(b.crowding, a.crowding) })
			f = f[:room]
		}
		out = append(out, f...)
		if len(out) == n {
			break
		}
	}
	return out
}

// fronts returns the schedules by rank. Within a front fitness descends and utilisation
// ascends.
func fronts(pop []*schedule) (out [][]*schedule) {
	sorted := slices.Clone(pop)
	slices.SortStableFunc(sorted, func(a, b *schedule) int {
		return cmp.Or(cmp.Compare(b.fitness, a.fitness), cmp.Compare(b.utilisation, a.utilisation))
	})
	for _, sc := range sorted {
		// The last schedule of a front has its highest utilisation, and that descends over
		// the fronts.
		rank, _ := slices.BinarySearchFunc(out, sc, func(f []*schedule, sc *schedule) int {
			if last := f[len(f)-1]; last.dominates(sc) {
				return -1
			}
			return 1
		})
		if sc.rank = rank; rank == len(out) {
			out = append(out, nil)
		}
		out[rank] = append(out[rank], sc)
	}
	return out
}

// dominates reports whether a is at least as good as b in both objectives and better in one.
func (a *schedule) dominates(b *schedule) bool {
	return a.fitness >= b.fitness && a.utilisation >= b.utilisation && (a.fitness > b.fitness || a.utilisation > b.utilisation)
}

// crowd sets the crowding distances of a front: of each schedule the differences of its
// neighbours in both objectives, as fractions of their ranges.
func crowd(front []*schedule) {
	last := len(front) - 1
	fitness := front[0].fitness - front[last].fitness
	utilisation := front[last].utilisation - front[0].utilisation
	for i, sc := range front {
		sc.crowding = math.Inf(1)
		if i > 0 && i < last {
			sc.crowding = part(front[i-1].fitness-front[i+1].fitness, fitness) + part(front[i+1].utilisation-front[i-1].utilisation, utilisation)
		}
	}
}

func part(x, of float64) float64 {
	if of == 0 {
		return 0
	}
	return x / of
}
