package planner

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// PerShape returns, for each shape of a request, the first choice of Rank that fits, has a throughput and passes accept;
// best first. A request without one has an empty result, whatever the reason. It judges fewer plans than Rank and
// describes only those it returns. accept must not keep or modify the configuration.
func (pl *Planner) PerShape(ctx context.Context, r Request, accept func(*spec.Config) bool) ([]Choice, error) {
	r, err := r.normal()
	if err != nil {
		return nil, err
	}
	legal, oneShape := pl.hasPlan(&r)
	if !legal {
		return nil, nil
	}
	top := perShapes.Get().(*perShape)
	defer top.release()
	top.reset(ctx, pl, &r, top.put)
	top.accept, top.fitting = accept, oneShape
	if err := top.sweep(); err != nil {
		return nil, err
	}
	slices.SortFunc(top.best, top.compare)
	out := make([]Choice, 0, len(top.best))
	for _, k := range top.best {
		c, err := top.choice(k)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// onlyShape returns the plans of r if all candidates have one shape, and the highest throughput is best.
func (pl *Planner) onlyShape(r *Request) (each planWalk, ok bool) {
	u, ok := pl.o.Space.(uniform)
	if !ok || r.Objective != Throughput || len(r.batches()) != 1 {
		return nil, false
	}
	from, to := r.counts()
	if from != to {
		return nil, false
	}
	_, each, ok = u.plans(r.at(from, r.batches()[0]))
	return each, ok
}

// perShape keeps the best accepted candidate of each shape. Like finders they are pooled.
type perShape struct {
	search
	accept func(*spec.Config) bool
	best   []candidate
	config spec.Config // scratch of put
}

var perShapes = sync.Pool{New: func() any { return new(perShape) }}

// release returns t to the pool.
func (t *perShape) release() {
	clear(t.best)
	*t = perShape{search: t.reusable(), best: t.best[:0]}
	perShapes.Put(t)
}

func (t *perShape) put(k *candidate) {
	if !(k.throughput > 0) {
		return
	}
	site := &t.sites[k.site].config
	i := slices.IndexFunc(t.best, func(o candidate) bool { return t.sites[o.site].config.Shape == site.Shape })
	if i >= 0 && t.compare(*k, t.best[i]) >= 0 {
		return
	}
	t.config = *site
	if t.config.Plan = k.plan; !t.accept(&t.config) {
		return
	}
	if i < 0 {
		i, t.best = len(t.best), append(t.best, candidate{})
	}
	t.best[i] = *k
	if t.fitting {
		t.threshold = k.score
	}
}
