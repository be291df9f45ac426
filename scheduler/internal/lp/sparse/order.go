package sparse

import (
	"cmp"
	"slices"
)

// Order returns the order in which to eliminate the rows of s: those with few entries first, so that factors stay
// sparse. Ties go to the lower index.
func Order(s *Upper) []int {
	degree := make([]int, s.N)
	for j := range s.N {
		for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
			degree[j]++
			degree[s.Idx[k]]++
		}
	}
	order := make([]int, s.N)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(degree[a], degree[b]) })
	return order
}
