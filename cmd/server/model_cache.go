package server

import (
	"context"
	"maps"
	"sync"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// modelCache keeps the targets and planners that requests are answered with. Each
// performance model has a planner of its own, so that a refit drops only the cached
// answers of that model. Safe for concurrent use.
type modelCache struct {
	resolver *query.Resolver

	mu         sync.RWMutex
	generation uint64 // rises with every invalidation; results of an older one are not cached
	targets    map[query.Request]target
	planners   map[modelKey]*answerer
}

// target is a model on an accelerator, and its answerer.
type target struct {
	*query.Target
	*answerer
}

// answerer is a planner with its predictor and family name.
type answerer struct {
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string
}

// modelKey identifies a performance model: the one fitted to Key or, with the zero
// Key, an unfitted family.
type modelKey struct {
	spec.Key        // canonical
	name     string // of the model on the card: the registry may have cards of several names of one model
	family   string
}

// maxTargets bounds the cached targets and planners.
const maxTargets = 4096

func newModelCache(d *query.Resolver) *modelCache {
	return &modelCache{resolver: d, targets: map[query.Request]target{}, planners: map[modelKey]*answerer{}}
}

// now returns the generation of the answers given now.
func (c *modelCache) now() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// measured drops the targets that new measurements of keys may change. Cached
// answers stay: their keys are figures, not names.
func (c *modelCache) measured(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	maps.DeleteFunc(c.targets, func(_ query.Request, t target) bool { return t.MeasuredIn(changed) })
}

// fitted drops the targets and planners of refitted keys.
func (c *modelCache) fitted(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	maps.DeleteFunc(c.targets, func(_ query.Request, t target) bool { return t.FittedBy(changed) })
	maps.DeleteFunc(c.planners, func(m modelKey, _ *answerer) bool { return changed[m.Key] })
}

// of returns the target of q, which passes Check.
func (c *modelCache) of(ctx context.Context, q *query.Request) (target, error) {
	key := q.TargetKey()
	c.mu.RLock()
	t, ok := c.targets[key]
	generation := c.generation
	c.mu.RUnlock()
	if ok {
		return t, nil
	}
	var err error
	if t.Target, err = c.resolver.Target(ctx, &key); err != nil {
		return t, err
	}
	if t.answerer, err = c.answering(t.Card(), key.Family, generation); err != nil {
		return t, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation == generation { // else t may be out of date
		if len(c.targets) >= maxTargets {
			clear(c.targets)
		}
		c.targets[key] = t
	}
	return t, nil
}

// bestFor returns the answerer of a key given by its figures.
func (c *modelCache) bestFor(key spec.Key, family string) (*answerer, error) {
	if family == "" {
		family = query.Auto
	}
	name := modelKey{Key: query.CanonicalKey(key), family: "requested: " + family}
	c.mu.RLock()
	a, ok := c.planners[name]
	generation := c.generation
	c.mu.RUnlock()
	if ok {
		return a, nil
	}
	card, err := c.resolver.BestCard(key, family)
	if err != nil {
		return nil, err
	}
	if a, err = c.answering(card, family, generation); err != nil {
		return nil, err
	}
	c.keep(name, a, generation)
	return a, nil
}

// answering returns the answerer of card, or of family where card is nil.
func (c *modelCache) answering(card *perfmodel.Card, family string, generation uint64) (*answerer, error) {
	name := modelKey{family: family}
	if card != nil {
		name = modelKey{query.CanonicalKey(card.Key), card.Model, card.Family}
	}
	c.mu.RLock()
	a, ok := c.planners[name]
	c.mu.RUnlock()
	if ok {
		return a, nil
	}
	p, by, err := c.resolver.Predictor(card, family)
	if err != nil {
		return nil, err
	}
	return c.keep(name, &answerer{planner: planner.New(p, planner.Options{}), predictor: p, family: by}, generation), nil
}

// keep caches a unless generation is out of date, and returns the cached answerer.
func (c *modelCache) keep(name modelKey, a *answerer, generation uint64) *answerer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		return a
	}
	if old, ok := c.planners[name]; ok {
		return old
	}
	if len(c.planners) >= maxTargets {
		clear(c.planners)
	}
	c.planners[name] = a
	return a
}

// resolve looks up the names of q.
func (c *modelCache) resolve(ctx context.Context, q *query.Request) (query.Resolved, *answerer, error) {
	if err := q.Check(); err != nil {
		return query.Resolved{}, nil, err
	}
	t, err := c.of(ctx, q)
	if err != nil {
		return query.Resolved{}, nil, err
	}
	r, err := q.PlannerRequest(t.Target)
	return query.Resolved{Request: r, Predictor: t.predictor, Family: t.family, Card: t.Card()}, t.answerer, err
}
