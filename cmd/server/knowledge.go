package server

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// knowledge is what questions are answered from: subjects and planners, each
// looked up once. There is a planner for every performance model, so that what it
// has found is forgotten when that model is fitted again, and no other's. Safe for
// concurrent use.
type knowledge struct {
	desk *ask.Desk

	mu         sync.RWMutex
	generation uint64 // changes when something is forgotten: what was looked up before is not kept after
	about      map[ask.Question]subject
	planners   map[modelKey]*asked
}

// subject is a model on an accelerator, with who answers about it.
type subject struct {
	*ask.Subject
	*asked
}

// asked is who answers, and what it is called.
type asked struct {
	planner   *planner.Planner
	predictor perfmodel.Predictor
	family    string
}

// modelKey says which performance model is meant: the one fitted to a key, or,
// with the zero Key, a family as it is.
type modelKey struct {
	spec.Key
	family string
}

// maxSubjects bounds the subjects kept; there are as many as names in use.
const maxSubjects = 4096

func newKnowledge(d *ask.Desk) *knowledge {
	return &knowledge{desk: d, about: map[ask.Question]subject{}, planners: map[modelKey]*asked{}}
}

// measured makes later questions look up again what measurements of keys say.
// Answers that were found stay: they are kept by what was asked, in figures.
func (k *knowledge) measured(keys []spec.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	maps.DeleteFunc(k.about, func(_ ask.Question, s subject) bool { return s.MeasuredIn(keys) })
}

// fitted makes later questions about keys look up who answers.
func (k *knowledge) fitted(keys []spec.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.generation++
	maps.DeleteFunc(k.about, func(_ ask.Question, s subject) bool { return s.FittedBy(keys) })
	maps.DeleteFunc(k.planners, func(name modelKey, _ *asked) bool {
		return slices.ContainsFunc(keys, func(key spec.Key) bool { return ask.SameKey(name.Key, key) })
	})
}

// of returns the subject of q, which passes Check.
func (k *knowledge) of(ctx context.Context, q *ask.Question) (subject, error) {
	key := q.AboutOnly()
	k.mu.RLock()
	s, ok := k.about[key]
	generation := k.generation
	k.mu.RUnlock()
	if ok {
		return s, nil
	}
	var err error
	if s.Subject, err = k.desk.About(ctx, &key); err != nil {
		return s, err
	}
	if s.asked, err = k.answering(s.Card(), key.Family, generation); err != nil {
		return s, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation == generation { // else it may be out of date
		if len(k.about) >= maxSubjects {
			clear(k.about)
		}
		k.about[key] = s
	}
	return s, nil
}

// bestFor returns who answers about a key that was asked for by its figures.
func (k *knowledge) bestFor(key spec.Key, family string) (*asked, error) {
	if family == "" {
		family = ask.Auto
	}
	name := modelKey{key, "asked for: " + family}
	k.mu.RLock()
	a, ok := k.planners[name]
	generation := k.generation
	k.mu.RUnlock()
	if ok {
		return a, nil
	}
	card, err := k.desk.BestCard(key, family)
	if err != nil {
		return nil, err
	}
	if a, err = k.answering(card, family, generation); err != nil {
		return nil, err
	}
	k.keep(name, a, generation)
	return a, nil
}

// answering returns who answers: the model of card, else the family asked for.
func (k *knowledge) answering(card *perfmodel.Card, family string, generation uint64) (*asked, error) {
	name := modelKey{family: family}
	if card != nil {
		name = modelKey{card.Key, card.Family}
	}
	k.mu.RLock()
	a, ok := k.planners[name]
	k.mu.RUnlock()
	if ok {
		return a, nil
	}
	p, by, err := k.desk.Predictor(card, family)
	if err != nil {
		return nil, err
	}
	return k.keep(name, &asked{planner: planner.New(p, planner.Options{}), predictor: p, family: by}, generation), nil
}

// keep remembers who answers unless that may be out of date, and returns the
// one that is remembered.
func (k *knowledge) keep(name modelKey, a *asked, generation uint64) *asked {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		return a
	}
	if old, ok := k.planners[name]; ok {
		return old
	}
	if len(k.planners) >= maxSubjects {
		clear(k.planners)
	}
	k.planners[name] = a
	return a
}

// resolve looks up what q names.
func (k *knowledge) resolve(ctx context.Context, q *ask.Question) (ask.Resolved, *asked, error) {
	if err := q.Check(); err != nil {
		return ask.Resolved{}, nil, err
	}
	s, err := k.of(ctx, q)
	if err != nil {
		return ask.Resolved{}, nil, err
	}
	r, err := q.Request(s.Subject)
	return ask.Resolved{Request: r, Predictor: s.predictor, Family: s.family, Card: s.Card()}, s.asked, err
}
