package memory

import (
	"sync"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// variant is a stack that a Config may run on, with its constants. It is immutable.
type variant struct {
	stack traits
	k     Constants
	logSD float64
}

// variants are those of choices of stacks under one Calibration. It is immutable.
type variants struct {
	first   variant
	rest    []variant // of each of the choices; nil if there is only one
	leastSD float64   // the smallest logSD
	hybrid  bool      // one of them shards inside a domain
}

// variantsOf returns the variants of choices, with the constants of cal. If the stated stack has its own constants, all
// choices have them.
func (cal *Calibration) variantsOf(of *stack.Choices) *variants {
	key := variantsKey{cal, of}
	if v, ok := keptVariants.Load(key); ok {
		return v.(*variants)
	}
	name := of.Name
	_, own := cal.Stacks[name]
	one := func(of *stack.Stack) variant {
		if !own {
			name = of.Name
		}
		v := variant{stack: traitsOf(of)}
		v.k, v.logSD = cal.of(name)
		return v
	}
	out := &variants{first: one(of.Stacks[0])}
	out.leastSD, out.hybrid = out.first.logSD, out.first.stack.hybrid
	if of.N > 1 {
		out.rest = make([]variant, of.N)
	}
	for i := range out.rest {
		out.rest[i] = one(of.Stacks[i])
		out.leastSD = min(out.leastSD, out.rest[i].logSD)
		out.hybrid = out.hybrid || out.rest[i].stack.hybrid
	}
	if _, again := keptVariants.LoadOrStore(key, out); !again && numVariants.Add(1)%maxVariants == 0 {
		keptVariants.Clear() // names of stacks come from users: they must not fill the memory
	}
	return out
}

type variantsKey struct {
	cal *Calibration
	of  *stack.Choices
}

var (
	keptVariants sync.Map      // variantsKey to *variants
	numVariants  atomic.Uint64 // since the start
)

// maxVariants is the number of variants that are kept.
const maxVariants = 256
