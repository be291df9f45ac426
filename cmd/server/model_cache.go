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

// measured drops the targets that new measurements of keys may change. Cached
// answers stay: their keys are figures, not names.
func (k *modelCache) measured(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	maps.DeleteFunc(k.targets, func(_ query.Request, s target) bool { return s.MeasuredIn(changed) })
}

// fitted drops the targets and planners of refitted keys.
func (k *modelCache) fitted(keys []spec.Key) {
	changed := query.CanonicalKeys(keys)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	maps.DeleteFunc(k.targets, func(_ query.Request, s target) bool { return s.FittedBy(changed) })
	maps.DeleteFunc(k.planners, func(m modelKey, _ *answerer) bool { return changed[m.Key] })
}

// of returns the target of q, which passes Check.
func (k *modelCache) of(ctx context.Context, q *query.Request) (target, error) {
	key := q.TargetKey()
	k.mu.RLock()
	s, ok := k.targets[key]
	generation := k.generation
	k.mu.RUnlock()
	if ok {
		return s, nil
	}
	var err error
	if s.Target, err = k.resolver.Target(ctx, &key); err != nil {
		return s, err
	}
	if s.answerer, err = k.answering(s.Card(), key.Family, generation); err != nil {
		return s, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation == generation { // else s may be out of date
		if len(k.targets) >= maxTargets {
			clear(k.targets)
		}
		k.targets[key] = s
	}
	return s, nil
}

// bestFor returns the answerer of a key given by its figures.
func (k *modelCache) bestFor(key spec.Key, family string) (*answerer, error) {
	if family == "" {
		family = query.Auto
	}
	name := modelKey{Key: query.CanonicalKey(key), family: "requested: " + family}
	k.mu.RLock()
	a, ok := k.planners[name]
	generation := k.generation
	k.mu.RUnlock()
	if ok {
		return a, nil
	}
	card, err := k.resolver.BestCard(key, family)
	if err != nil {
		return nil, err
	}
	if a, err = k.answering(card, family, generation); err != nil {
		return nil, err
	}
	k.keep(name, a, generation)
	return a, nil
}

// answering returns the answerer of card, or of family where card is nil.
func (k *modelCache) answering(card *perfmodel.Card, family string, generation uint64) (*answerer, error) {
	name := modelKey{family: family}
	if card != nil {
		name = modelKey{query.CanonicalKey(card.Key), card.Model, card.Family}
	}
	k.mu.RLock()
	a, ok := k.planners[name]
	k.mu.RUnlock()
	if ok {
		return a, nil
	}
	p, by, err := k.resolver.Predictor(card, family)
	if err != nil {
		return nil, err
	}
	return k.keep(name, &answerer{planner: planner.New(p, planner.Options{}), predictor: p, family: by}, generation), nil
}

// keep caches a unless generation is out of date, and returns the cached answerer.
func (k *modelCache) keep(name modelKey, a *answerer, generation uint64) *answerer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		return a
	}
	if old, ok := k.planners[name]; ok {
		return old
	}
	if len(k.planners) >= maxTargets {
		clear(k.planners)
	}
	k.planners[name] = a
	return a
}

// resolve looks up the names of q.
func (k *modelCache) resolve(ctx context.Context, q *query.Request) (query.Resolved, *answerer, error) {
	if err := q.Check(); err != nil {
		return query.Resolved{}, nil, err
	}
	s, err := k.of(ctx, q)
	if err != nil {
		return query.Resolved{}, nil, err
	}
	r, err := q.PlannerRequest(s.Target)
	return query.Resolved{Request: r, Predictor: s.predictor, Family: s.family, Card: s.Card()}, s.answerer, err
}
