package policy

import (
	"cmp"
	"math"
	"slices"
)

// onesBlock is a job to be laid out on devices side by side.
type onesBlock struct {
	id   int // of the job, 0 or more
	size int // devices, 1 or more
}

// onesLayout lays blocks out on devices in a row such that as many devices as
// possible stay with the job that has them now: ONES's reordering, exactly.
//
// With sizes that only fit in some orders that is as hard as packing bins. What
// makes it quick is a bound that is nearly always attained. Of the jobs that keep
// some of their devices, those whose devices lie side by side now are in the order
// of these, since a block that holds one of its own devices lies to the left of
// those of all later jobs. So if what lies between them could have any length, the
// best layout is found job by job in time devices*jobs; see bounds. A depth-first
// search then looks for a layout that keeps as much as the bound, one device less,
// and so on, and leaves every branch whose bound is less: the first it finds is
// optimal. There are two such searches: rowSearch for jobs whose devices lie side by
// side now, and search for others, which does not rely on their order.
//
// Source: the artifact of ONES, kurisusnowdeng/ones_sc21 at commit 8535358, has a
// dynamic programme over sets of jobs that keeps one set for each number of
// devices and jobs, which is not always optimal.
type onesLayout struct {
	now    []int // the job each device is with, -1 = none
	blocks []onesBlock
	target int // devices to be kept
	budget int // moves to look at yet

	kept   []keptBlock // blocks with devices now, by the first of these
	bound  []int32     // by the first kept block that is not placed, the device and the wide blocks placed: see bounds
	states int         // numbers of wide blocks that can be placed
	wide   int         // those placed in the search, as an index
	apart  bool        // devices of each kept block lie side by side
	byJob  bool        // look by search, not by rowSearch
	filler []sizeClass // all, widest first
	empty  int         // devices left over

	at     []int             // the layout found: the first device of each block
	path   []int             // the first device of each block in the search, -1 = not placed
	failed map[layoutKey]int // the most kept by then of searches that failed
}

// keptBlock is a block whose job has devices now.
type keptBlock struct {
	onesBlock
	block       int   // index
	devices     []int // ascending
	first, last int   // of them
	placed      bool
}

// sizeClass is the blocks of a size.
type sizeClass struct {
	size   int
	blocks []int // indices of those not placed whose jobs have no devices now: one is as good as the other
	kept   []int // the others, indices of onesLayout.kept
	stride int   // of the blocks placed in onesLayout.wide, 0 = they do not count
}

// layoutKey is what is left to be done in the search.
type layoutKey struct {
	device int
	left   uint64
}

// Bounds of what is done to find a layout: numbers of bounds in the second attempt, and
// of moves looked at in each.
const (
	onesBounds = 1 << 20
	onesMoves  = 1 << 16
)

// layOut returns the first device of each block, how many devices stay with their
// jobs, and whether no layout keeps more. The blocks must fit, their ids differ, and
// neither argument is modified. What rowSearch leaves open, with bounds that count no
// wide blocks and with those that do, search tries too: among many devices it at
// times finds more.
func layOut(now []int, blocks []onesBlock) (at []int, keeps int, proven bool) {
	keeps = -1
	for _, attempt := range []struct {
		states int
		byJob  bool
	}{{1, false}, {64, false}, {1, true}} {
		l := &onesLayout{now: now, blocks: blocks, path: make([]int, len(blocks))}
		l.sort()
		states := min(attempt.states, onesBounds/((len(l.kept)+1)*(len(now)+1)))
		if keeps >= 0 && (attempt.states > 1 && states <= 1 || attempt.byJob && !l.apart) {
			continue
		}
		l.byJob = attempt.byJob || !l.apart
		l.bounds(max(states, 1))
		n, ok := l.descend()
		if n > keeps {
			at, keeps = l.at, n
		}
		if proven = ok; proven {
			break
		}
	}
	return at, keeps, proven
}

// descend looks for a layout that keeps as much as the bound, or one device less, and
// so on. Where too many moves were looked at for a number the next are 1, 2, 4, ...
// less, and what is found is not proven to be the most.
func (l *onesLayout) descend() (keeps int, proven bool) {
	l.target, proven = l.most(0, 0), true
	budget := onesMoves / 2
	for fall := 1; ; {
		l.budget, l.failed = budget, map[layoutKey]int{}
		if l.target <= 0 { // any layout will do, and the first is one
			l.target, l.budget = impossible, math.MaxInt
		}
		if l.find() {
			return l.keeps(), proven
		}
		l.target -= fall
		if budget = max(l.budget, budget/2, 1); l.budget <= 0 {
			proven, fall = false, 2*fall
		}
	}
}

// find looks for a layout that keeps the target.
func (l *onesLayout) find() bool {
	if l.byJob {
		return l.search(0, 0, 0)
	}
	return newRowSearch(l).find()
}

// keeps counts the devices that stay with their jobs in the layout found.
func (l *onesLayout) keeps() (n int) {
	for i := range l.kept {
		n += l.kept[i].keeps(l.at[l.kept[i].block])
	}
	return n
}

// sort sorts the blocks by whether their jobs have devices now.
func (l *onesLayout) sort() {
	devices := map[int][]int{}
	for d, id := range l.now {
		if id >= 0 {
			devices[id] = append(devices[id], d)
		}
	}
	classes := map[int]*sizeClass{}
	l.empty, l.apart = len(l.now), true
	for i, b := range l.blocks {
		l.empty -= b.size
		if classes[b.size] == nil {
			classes[b.size] = &sizeClass{size: b.size}
		}
		has := devices[b.id]
		if len(has) == 0 {
			classes[b.size].blocks = append(classes[b.size].blocks, i)
			continue
		}
		k := keptBlock{onesBlock: b, block: i, devices: has, first: has[0], last: has[len(has)-1]}
		l.apart = l.apart && k.last-k.first+1 == len(has)
		l.kept = append(l.kept, k)
	}
	slices.SortFunc(l.kept, func(a, b keptBlock) int { return cmp.Compare(a.first, b.first) })
	for i := range l.kept {
		c := classes[l.kept[i].size]
		c.kept = append(c.kept, i)
	}
	for _, c := range classes {
		l.filler = append(l.filler, *c)
	}
	slices.SortFunc(l.filler, func(a, b sizeClass) int { return cmp.Compare(b.size, a.size) })
}

// keeps returns how many of its devices the job of k keeps from a device on.
func (k *keptBlock) keeps(device int) (n int) {
	if k.last-k.first+1 == len(k.devices) {
		return max(min(device+k.size, k.last+1)-max(device, k.first), 0)
	}
	for _, d := range k.devices {
		if d >= device && d < device+k.size {
			n++
		}
	}
	return n
}

// bounds works out how much can be kept at most:
//
//	B(k, d, w) = max(B(k+1, d, w), B(k, d+1, w), keeps_k(d) + B(k+1, d+n_k, w), B(k, d+n_c, w+c))
//
// of the kept blocks from the k-th on and the devices from d on, where of the wide
// blocks that have nothing to keep w are placed, and all have to be: the k-th keeps
// nothing, or d is not the first device of anything that counts, or of the k-th, or
// of a wide block of class c. Wide are so many classes of them, the widest first,
// that w has no more than so many values. Where devices of jobs do not lie side by
// side, each job is taken to be alone:
//
//	B(k, d) = B(k+1, d) + max over e >= d of keeps_k(e)
func (l *onesLayout) bounds(states int) {
	if !l.apart {
		states = 1
	}
	l.setWide(states)
	row := (len(l.now) + 1) * l.states
	l.bound = make([]int32, (len(l.kept)+1)*row)
	for k := len(l.kept); k >= 0; k-- {
		switch {
		case k == len(l.kept):
			l.boundRow(l.bound[k*row:], nil, nil)
		case l.apart:
			l.boundRow(l.bound[k*row:(k+1)*row], l.bound[(k+1)*row:], &l.kept[k])
		default:
			l.boundAlone(l.bound[k*row:(k+1)*row], l.bound[(k+1)*row:], &l.kept[k])
		}
	}
}

// setWide chooses the classes of wide blocks.
func (l *onesLayout) setWide(states int) {
	l.states = 1
	for i := range l.filler {
		c := &l.filler[i]
		c.stride = 0
		if n := len(c.blocks) + 1; c.size > 1 && n > 1 && l.states*n <= states {
			c.stride = l.states
			l.states *= n
		}
	}
}

// impossible is less than the bound of anything.
const impossible = math.MinInt32 / 2

// boundRow fills in the bounds of a kept block, from those of the next; those of
// nobody where both are nil.
func (l *onesLayout) boundRow(row, next []int32, b *keptBlock) {
	from := len(l.now)
	if b != nil {
		from = min(len(l.now)-b.size, b.last) // later it keeps nothing
		copy(row[(from+1)*l.states:], next[(from+1)*l.states:])
	}
	for d := from; d >= 0; d-- {
		keeps, here := 0, row[d*l.states:(d+1)*l.states]
		if b != nil {
			keeps = b.keeps(d)
		}
		for w := range here {
			v := int32(impossible)
			switch {
			case d < len(l.now):
				v = row[(d+1)*l.states+w]
			case w == l.states-1:
				v = 0
			}
			if b != nil {
				v = max(v, next[d*l.states+w])
			}
			if keeps > 0 {
				v = max(v, int32(keeps)+next[(d+b.size)*l.states+w])
			}
			here[w] = v
		}
		for i := range l.filler {
			if c := &l.filler[i]; c.stride > 0 && d+c.size <= len(l.now) {
				there := row[(d+c.size)*l.states:]
				for w := range l.states - c.stride {
					if w/c.stride%(len(c.blocks)+1) < len(c.blocks) {
						here[w] = max(here[w], there[w+c.stride])
					}
				}
			}
		}
	}
}

// boundAlone is boundRow for a block taken to be alone.
func (l *onesLayout) boundAlone(row, next []int32, b *keptBlock) {
	copy(row, next)
	best := 0
	for d := min(len(l.now)-b.size, b.last); d >= 0; d-- {
		best = max(best, b.keeps(d))
		row[d] += int32(best)
	}
}

// most returns how much can be kept at most from a device on, where the kept blocks
// before the k-th are all placed, and so many wide ones.
func (l *onesLayout) most(k, device int) int {
	return int(l.bound[(k*(len(l.now)+1)+device)*l.states+l.wide])
}

// search completes the layout from a device on, in whatever order of jobs, such that it keeps the target, of
// which it has kept some. left is a sum over what is placed. It reports whether that
// can be done, and leaves the layout as it was if not.
func (l *onesLayout) search(device, kept int, placed uint64) bool {
	if device == len(l.now) {
		if kept < l.target {
			return false
		}
		l.at = slices.Clone(l.path)
		return true
	}
	first := 0
	for first < len(l.kept) && l.kept[first].placed {
		first++
	}
	if kept+l.most(first, device) < l.target || l.budget <= 0 {
		return false
	}
	key := layoutKey{device, placed}
	if had, ok := l.failed[key]; ok && kept <= had {
		return false
	}
	moves := l.moves(nil, device, first)
	l.budget -= len(moves)
	slices.SortStableFunc(moves, func(a, b layoutMove) int { return cmp.Compare(b.most, a.most) })
	for i := range moves {
		if kept+moves[i].most < l.target {
			break
		}
		if l.try(&moves[i], device, kept, placed) {
			return true
		}
	}
	l.failed[key] = kept
	return false
}

// layoutMove is what can be done with a device: a kept block begins there, or one of
// a class that has nothing to keep, or neither.
type layoutMove struct {
	kept, class int // indices, -1 = none
	keeps, most int // what is kept with the block, and at most from there on
}

// moves appends what can be done with a device, where the kept blocks before first
// are placed. Of equally wide blocks that keep nothing here one that has nothing to
// keep anywhere is never worse than the others; these come last, but for an empty
// device.
func (l *onesLayout) moves(out []layoutMove, device, first int) []layoutMove {
	room := len(l.now) - device
	for i := first; i < len(l.kept); i++ {
		k := &l.kept[i]
		if k.placed || k.size > room {
			continue
		}
		if keeps := k.keeps(device); keeps > 0 {
			out = append(out, layoutMove{i, -1, keeps, keeps + l.most(l.after(i, first), device+k.size)})
		}
	}
	for i := range l.filler {
		if c := &l.filler[i]; len(c.blocks) > 0 && c.size <= room {
			l.wide += c.stride
			out = append(out, layoutMove{-1, i, 0, l.most(first, device+c.size)})
			l.wide -= c.stride
		}
	}
	for i := range l.filler {
		c := &l.filler[i]
		if len(c.blocks) > 0 || c.size > room {
			continue
		}
		for _, k := range c.kept {
			if b := &l.kept[k]; k >= first && !b.placed && b.keeps(device) == 0 {
				out = append(out, layoutMove{k, -1, 0, l.most(l.after(k, first), device+c.size)})
			}
		}
	}
	if l.empty > 0 {
		out = append(out, layoutMove{-1, -1, 0, l.most(first, device+1)})
	}
	return out
}

// after returns the first kept block that is not placed once the i-th is, where that
// is first now.
func (l *onesLayout) after(i, first int) int {
	if i > first {
		return first
	}
	for first++; first < len(l.kept) && l.kept[first].placed; first++ {
	}
	return first
}

// try makes a move and completes the layout, or takes it back.
func (l *onesLayout) try(m *layoutMove, device, kept int, placed uint64) bool {
	switch {
	case m.kept >= 0:
		k := &l.kept[m.kept]
		k.placed, l.path[k.block] = true, device
		if l.search(device+k.size, kept+m.keeps, placed+mark(1, m.kept)) {
			return true
		}
		k.placed = false
	case m.class >= 0:
		c := &l.filler[m.class]
		n := len(c.blocks)
		l.path[c.blocks[n-1]] = device
		c.blocks, l.wide = c.blocks[:n-1], l.wide+c.stride
		if l.search(device+c.size, kept, placed+mark(2, m.class)) {
			return true
		}
		c.blocks, l.wide = c.blocks[:n], l.wide-c.stride
	default:
		l.empty--
		if l.search(device+1, kept, placed) {
			return true
		}
		l.empty++
	}
	return false
}

// mark is a number for something placed, such that sums over different things are
// different but with the probability of 64 random bits (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", OOPSLA 2014: SplitMix64).
func mark(kind, i int) uint64 {
	z := uint64(kind)<<32 + uint64(i) + 1
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
