package sim

import (
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Range is an inclusive range of job numbers.
type Range struct{ First, Last int }

// Contains reports whether n is in r.
func (r Range) Contains(n int) bool { return r.First <= n && n <= r.Last }

// Numbers returns the number of each job, by which Score selects: the decimal
// digits its id ends in ("300", "bert-300"). If an id ends in none, or two jobs
// would share a number, jobs are numbered by their position instead, from 0.
func Numbers(jobs []spec.Job) []int {
	out := make([]int, len(jobs))
	seen := make(map[int]struct{}, len(jobs))
	for i := range jobs {
		n, ok := trailingNumber(string(jobs[i].ID))
		_, dup := seen[n]
		if !ok || dup {
			for k := range out {
				out[k] = k
			}
			return out
		}
		seen[n] = struct{}{}
		out[i] = n
	}
	return out
}

func trailingNumber(id string) (int, bool) {
	i := len(id)
	for i > 0 && '0' <= id[i-1] && id[i-1] <= '9' {
		i--
	}
	n, err := strconv.Atoi(id[i:])
	return n, err == nil
}
