package scheduler

import "math/bits"

// nodeSet is a set of nodes that finds the next member in constant time: a bit per node,
// a bit per 64 of these, and a bit per 64 of those.
type nodeSet struct {
	levels [3][]uint64
	count  int // members
}

// newNodeSet returns an empty set for nodes 0..n-1.
func newNodeSet(n int) *nodeSet {
	s := &nodeSet{}
	for i := range s.levels {
		n = (n + 63) / 64
		s.levels[i] = make([]uint64, n)
	}
	return s
}

func (s *nodeSet) clone() *nodeSet {
	c := &nodeSet{count: s.count}
	for i := range s.levels {
		c.levels[i] = append([]uint64(nil), s.levels[i]...)
	}
	return c
}

// add adds a node that is not in the set.
func (s *nodeSet) add(node int) {
	s.count++
	for i := range s.levels {
		word := &s.levels[i][node/64]
		was := *word
		*word |= 1 << (node % 64)
		if was != 0 {
			return
		}
		node /= 64
	}
}

// remove removes a member.
func (s *nodeSet) remove(node int) {
	s.count--
	for i := range s.levels {
		word := &s.levels[i][node/64]
		*word &^= 1 << (node % 64)
		if *word != 0 {
			return
		}
		node /= 64
	}
}

// next returns the first member from node on, -1 if there is none.
func (s *nodeSet) next(node int) int {
	for i := range s.levels {
		words := s.levels[i]
		at := node / 64
		if at >= len(words) {
			return -1
		}
		if rest := words[at] >> (node % 64); rest != 0 {
			return s.descend(i, node+bits.TrailingZeros64(rest))
		}
		node = at + 1
	}
	top := s.levels[len(s.levels)-1] // with more than 64^3 nodes, scan the rest
	for at := node; at < len(top); at++ {
		if top[at] != 0 {
			return s.descend(len(s.levels)-1, at*64+bits.TrailingZeros64(top[at]))
		}
	}
	return -1
}

// descend returns the first member under bit at of a level.
func (s *nodeSet) descend(level, at int) int {
	for level--; level >= 0; level-- {
		at = at*64 + bits.TrailingZeros64(s.levels[level][at])
	}
	return at
}
