package policy

import (
	"cmp"
	"slices"
)

// rowSearch completes a layout of jobs whose devices lie side by side now, from left
// to right, in the order of these. What is left to be done depends on little: the
// first of the kept blocks that is neither placed nor given up; the device; and of
// every size how many more fillers, blocks that keep nothing, are placed than there
// are till now, which are those of jobs without devices and those given up. So who is
// given up need not be told from others of its size, and its block may lie to the
// left of where that is decided.
type rowSearch struct {
	*onesLayout
	class   []int          // of each kept block, an index of onesLayout.filler
	later   [][]int        // kept blocks of each class from the k-th on
	used    []int          // fillers placed, by class
	spare   []int          // fillers there are till now, by class
	balance uint64         // the difference of these, as a sum of marks
	filled  []rowFiller    // placed
	placed  []int          // the first device of each kept block, -1 = given up
	failed  map[rowKey]int // the most kept by then of searches that failed
}

// rowFiller is a filler that is placed.
type rowFiller struct{ class, device int }

// rowKey is what is left to be done.
type rowKey struct {
	k, device int
	balance   uint64
}

func newRowSearch(l *onesLayout) *rowSearch {
	s := &rowSearch{onesLayout: l, class: make([]int, len(l.kept)), used: make([]int, len(l.filler)), placed: make([]int, len(l.kept))}
	s.later = make([][]int, len(l.kept)+1)
	for c := range l.filler {
		s.spare = append(s.spare, len(l.filler[c].blocks))
		for _, k := range l.filler[c].kept {
			s.class[k] = c
		}
	}
	s.later[len(l.kept)] = make([]int, len(l.filler))
	for k := len(l.kept) - 1; k >= 0; k-- {
		s.later[k] = slices.Clone(s.later[k+1])
		s.later[k][s.class[k]]++
	}
	return s
}

// find looks for a layout that keeps the target.
func (s *rowSearch) find() bool {
	s.failed = map[rowKey]int{}
	return s.from(0, 0, 0)
}

// rowMove is what can be done next.
type rowMove struct {
	kind        rowKind
	class       int // of a filler
	keeps, most int // what is kept with the block, and at most from there on
}

type rowKind int

const (
	keepNext   rowKind = iota // the next kept block begins here
	fill                      // a filler does
	leaveEmpty                // nothing does
	giveUpNext                // the next kept block is one of the fillers
)

// from completes the layout from a device and a kept block on, such that it keeps the
// target, of which it has kept some. It reports whether that can be done, and leaves
// the search as it was if not.
func (s *rowSearch) from(k, device, kept int) bool {
	if device == len(s.now) {
		if kept < s.target {
			return false
		}
		s.finish(k)
		return true
	}
	if kept+s.most(k, device) < s.target || s.budget <= 0 {
		return false
	}
	key := rowKey{k, device, s.balance}
	if had, ok := s.failed[key]; ok && kept <= had {
		return false
	}
	var buffer [24]rowMove
	moves := s.moves(buffer[:0], k, device)
	s.budget -= len(moves)
	slices.SortStableFunc(moves, func(a, b rowMove) int { return cmp.Compare(b.most, a.most) })
	for i := range moves {
		if kept+moves[i].most < s.target {
			break
		}
		if s.try(&moves[i], k, device, kept) {
			return true
		}
	}
	s.failed[key] = kept
	return false
}

// moves appends what can be done at a device. The next kept block is not placed where
// its class has as many fillers by now as there can be.
func (s *rowSearch) moves(out []rowMove, k, device int) []rowMove {
	room := len(s.now) - device
	if k < len(s.kept) {
		c := s.class[k]
		if b := &s.kept[k]; b.size <= room && s.used[c] < s.spare[c]+s.later[k][c] {
			if keeps := b.keeps(device); keeps > 0 {
				out = append(out, rowMove{keepNext, 0, keeps, keeps + s.most(k+1, device+b.size)})
			}
		}
	}
	for c := range s.filler {
		f := &s.filler[c]
		if f.size <= room && s.used[c] < s.spare[c]+s.later[k][c] {
			step := s.step(c)
			s.wide += step
			out = append(out, rowMove{fill, c, 0, s.most(k, device+f.size)})
			s.wide -= step
		}
	}
	if s.empty > 0 {
		out = append(out, rowMove{leaveEmpty, 0, 0, s.most(k, device+1)})
	}
	if k < len(s.kept) {
		out = append(out, rowMove{giveUpNext, 0, 0, s.most(k+1, device)})
	}
	return out
}

// step is by how much onesLayout.wide grows with a filler of a class.
func (s *rowSearch) step(c int) int {
	if s.used[c] < len(s.filler[c].blocks) {
		return s.filler[c].stride
	}
	return 0
}

// try makes a move and completes the layout, or takes it back.
func (s *rowSearch) try(m *rowMove, k, device, kept int) bool {
	switch m.kind {
	case keepNext:
		b := &s.kept[k]
		s.placed[k] = device
		return s.from(k+1, device+b.size, kept+m.keeps)
	case fill:
		c := m.class
		step := s.step(c)
		s.wide, s.used[c], s.balance = s.wide+step, s.used[c]+1, s.balance+mark(1, c)
		s.filled = append(s.filled, rowFiller{c, device})
		if s.from(k, device+s.filler[c].size, kept) {
			return true
		}
		s.filled = s.filled[:len(s.filled)-1]
		s.wide, s.used[c], s.balance = s.wide-step, s.used[c]-1, s.balance-mark(1, c)
	case leaveEmpty:
		s.empty--
		if s.from(k, device+1, kept) {
			return true
		}
		s.empty++
	default:
		c := s.class[k]
		s.placed[k] = -1
		s.spare[c]++
		s.balance -= mark(1, c)
		if s.from(k+1, device, kept) {
			return true
		}
		s.spare[c]--
		s.balance += mark(1, c)
	}
	return false
}

// finish gives up the kept blocks from the k-th on, and says where all are.
func (s *rowSearch) finish(k int) {
	s.at = slices.Clone(s.path)
	free := make([][]int, len(s.filler))
	for c := range s.filler {
		free[c] = slices.Clone(s.filler[c].blocks)
	}
	for i := range s.kept {
		if i < k && s.placed[i] >= 0 {
			s.at[s.kept[i].block] = s.placed[i]
		} else {
			free[s.class[i]] = append(free[s.class[i]], s.kept[i].block)
		}
	}
	for _, f := range s.filled {
		n := len(free[f.class])
		s.at[free[f.class][n-1]] = f.device
		free[f.class] = free[f.class][:n-1]
	}
}
