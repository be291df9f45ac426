package answer

import (
	"context"
	"maps"
	"sync"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Answerer answers requests. It keeps the targets and planners that it answered with; each performance model has a
// planner of its own, so that a refit drops only the cached answers of that model. Safe for concurrent use.
type Answerer struct {
	resolver *query.Resolver

	mu         sync.RWMutex
	generation uint64 // rises with every invalidation; results of an older one are not cached
	targets    map[query.Request]Target
	planners   map[modelKey]*Model
	plans      map[string]*Prepared // by the text of a question without its seq
}

// Target is a model on an accelerator, and the performance model that answers about it.
type Target struct {
	*query.Target
	*Model
}

// Model is a performance model with its planner.
type Model struct {
	Planner   *planner.Planner
	Predictor perfmodel.Predictor
	Family    string
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

// New returns an Answerer of what d resolves.
func New(d *query.Resolver) *Answerer {
	return &Answerer{resolver: d, targets: map[query.Request]Target{}, planners: map[modelKey]*Model{}, plans: map[string]*Prepared{}}
}

// Generation returns the generation of the answers given now.
func (c *Answerer) Generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.generation
}

// Measured drops the targets that new measurements of keys may change. Cached
// answers stay: their keys are figures, not names.
func (c *Answerer) Measured(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	clear(c.plans)
	maps.DeleteFunc(c.targets, func(_ query.Request, t Target) bool { return t.MeasuredIn(changed) })
}

// Fitted drops the targets and planners of refitted keys.
func (c *Answerer) Fitted(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	clear(c.plans)
	maps.DeleteFunc(c.targets, func(_ query.Request, t Target) bool { return t.FittedBy(changed) })
	maps.DeleteFunc(c.planners, func(m modelKey, _ *Model) bool { return changed[m.Key] })
}

// Reset drops everything that is cached.
func (c *Answerer) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation++
	clear(c.plans)
	clear(c.targets)
	clear(c.planners)
}

// Target returns the target of q, which passes Check.
func (c *Answerer) Target(ctx context.Context, q *query.Request) (Target, error) {
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
	if t.Model, err = c.answering(t.Card(), key.Family, generation); err != nil {
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

// BestFor returns the performance model of a key given by its figures.
func (c *Answerer) BestFor(key spec.Key, family string) (*Model, error) {
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

// answering returns the performance model of card, or of family where card is nil.
func (c *Answerer) answering(card *perfmodel.Card, family string, generation uint64) (*Model, error) {
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
	return c.keep(name, &Model{Planner: planner.New(p, planner.Options{}), Predictor: p, Family: by}, generation), nil
}

// keep caches a unless generation is out of date, and returns the cached one.
func (c *Answerer) keep(name modelKey, a *Model, generation uint64) *Model {
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

// Resolve looks up the names of q.
func (c *Answerer) Resolve(ctx context.Context, q *query.Request) (query.Resolved, *Model, error) {
	if err := q.Check(); err != nil {
		return query.Resolved{}, nil, err
	}
	t, err := c.Target(ctx, q)
	if err != nil {
		return query.Resolved{}, nil, err
	}
	r, err := q.PlannerRequest(t.Target)
	return query.Resolved{Request: r, Predictor: t.Predictor, Family: t.Family, Card: t.Card()}, t.Model, err
}
