package accuracy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Options say what Run does. The zero value of every field but Shared works.
type Options struct {
	Shared     string      // directory with data/rubick, data/sia, data/dl2 and data/published
	Protocols  []Protocol  // nil = all
	Contenders []Contender // nil = all
	Seed       uint64      // of the random draws
	// Done, if set, is called with every Result when it is complete, one at a time.
	Done func(r Result, done, of int)
}

// Validate returns an error for options that Run cannot work with.
func (o Options) Validate() error {
	if o.Shared == "" {
		return errors.New("accuracy: no directory of data sets: set PACER_SHARED to the directory with data/published")
	}
	return nil
}

// Run measures every family under every protocol, in parallel on all processors.
// Results and their order do not depend on the number of processors, except for
// times.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Protocols == nil {
		o.Protocols = Protocols()
	}
	if o.Contenders == nil {
		o.Contenders = Contenders()
	}
	b := newBench(ctx, o)
	var together, alone []int
	for i := range len(o.Protocols) * len(o.Contenders) {
		if b.protocol(i).alone {
			alone = append(alone, i)
		} else {
			together = append(together, i)
		}
	}
	results := make([]Result, len(together)+len(alone))
	errs := make([]error, len(results))
	var wg sync.WaitGroup
	for _, i := range together {
		wg.Go(func() { results[i], errs[i] = b.one(i) })
	}
	wg.Wait()
	for _, i := range alone {
		results[i], errs[i] = b.one(i)
	}
	return results, errors.Join(errs...)
}

// Bench is one Run: the data and the values computed so far.
type Bench struct {
	Options
	*known
	ctx   context.Context
	slots chan struct{} // held while a processor is used

	mu   sync.Mutex
	done int

	oneOut memo[oneOutKey, []prediction]
	traces memo[string, []prediction]
}

// known is what has been read from Options.Shared and trained on it. It depends on no other option.
type known struct {
	tables memo[string, *tables]            // by directory
	rows   memo[string, []spec.Measurement] // other data sets, by name
	priors memo[priorKey, Prior]
	// calibrations of memory, by the source left out
	calibrations memo[string, *memory.Calibration]
}

func newBench(ctx context.Context, o Options) *Bench { return newBenchWith(ctx, o, &known{}) }

func newBenchWith(ctx context.Context, o Options, k *known) *Bench {
	return &Bench{Options: o, known: k, ctx: ctx, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// protocol and contender return those of the i-th result.
func (b *Bench) protocol(i int) Protocol   { return b.Protocols[i/len(b.Contenders)] }
func (b *Bench) contender(i int) Contender { return b.Contenders[i%len(b.Contenders)] }

// one computes the i-th result.
func (b *Bench) one(i int) (Result, error) {
	p, c := b.protocol(i), b.contender(i)
	if err := b.ctx.Err(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	r, err := recordUnable(requirePrediction(p.run(b.ctx, b, c)))
	if err != nil {
		return r, fmt.Errorf("accuracy: %s, family %s: %w", p.Name, c.Name, err)
	}
	r.Protocol, r.Family, r.WallSec = p.Name, c.Name, time.Since(start).Seconds()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	if b.Done != nil {
		b.Done(r, b.done, len(b.Protocols)*len(b.Contenders))
	}
	return r, nil
}

// each calls work for 0..n-1 in parallel, one call per processor, and returns the
// errors. work must not call each.
func (b *Bench) each(n int, work func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			b.slots <- struct{}{}
			defer func() { <-b.slots }()
			if errs[i] = b.ctx.Err(); errs[i] == nil {
				errs[i] = work(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// predictParts returns the predictions of n parts, computed in parallel, in order.
func (b *Bench) predictParts(n int, part func(i int) ([]prediction, error)) ([]prediction, error) {
	parts := make([][]prediction, n)
	err := b.each(n, func(i int) (err error) {
		parts[i], err = part(i)
		return err
	})
	var all []prediction
	for _, p := range parts {
		all = append(all, p...)
	}
	return all, err
}

// dataset returns the rows of a data set, read once.
func (b *Bench) dataset(name string) ([]spec.Measurement, error) {
	return b.rows.get(name, func() ([]spec.Measurement, error) { return importAll(b.ctx, b.Shared, name) })
}

// read returns the tables of a directory, read once.
func (b *Bench) read(dir string) (*tables, error) {
	return b.tables.get(dir, func() (*tables, error) { return readTables(b.ctx, b.Shared, dir) })
}

// published returns the tables of data/published.
func (b *Bench) published() (*tables, error) { return b.read(publishedDir) }

type priorKey struct{ family, left string }

// prior returns the Prior of c trained on the sources of data/published and data/field except left, on Rubick's traces
// and on OwnRows. c.Train must be set.
func (b *Bench) prior(c Contender, left string) (Prior, error) {
	return b.priors.get(priorKey{c.Name, left}, func() (Prior, error) {
		rows, err := b.sourcesWithout(left)
		if err != nil {
			return nil, err
		}
		if left != tracesDir {
			traces, err := b.dataset(tracesDir)
			if err != nil {
				return nil, err
			}
			rows = append(rows, traces...)
		}
		return b.train(c, rows)
	})
}

// train returns the Prior of c trained on rows and on OwnRows.
func (b *Bench) train(c Contender, rows []spec.Measurement) (Prior, error) {
	own, err := OwnRows()
	if err != nil {
		return nil, err
	}
	return c.Train(b.ctx, append(rows, own...))
}

// sourcesWithout returns the usable rows of data/published and data/field, except those of a source; "" leaves none out.
func (b *Bench) sourcesWithout(left string) (rows []spec.Measurement, err error) {
	for _, dir := range []string{publishedDir, fieldDir} {
		p, err := b.read(dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, p.without(left)...)
	}
	return rows, nil
}

// A memo computes the value of each key once, also for concurrent callers.
type memo[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]func() (V, error)
}

func (m *memo[K, V]) get(key K, work func() (V, error)) (V, error) {
	m.mu.Lock()
	f, ok := m.values[key]
	if !ok {
		if m.values == nil {
			m.values = map[K]func() (V, error){}
		}
		f = sync.OnceValues(work)
		m.values[key] = f
	}
	m.mu.Unlock()
	return f()
}
