package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/scheduler"
)

// estimates is an Oracle that answers each model and accelerator by its most accurate
// performance model. With a server, that one answers, and the models of this process only while it
// does not.
type estimates struct {
	resolver *query.Resolver
	family   string
	server   *remote.Client // nil = none
	limit    time.Duration  // longest wait for an answer of the server
	warn     func(error)

	mu       sync.Mutex
	planners map[spec.Key]*planner.Planner
	refits   bool      // watch saw new fits that refitted has not reported
	fault    error     // of the last request to the server
	silent   time.Time // until when the server is not asked, since it did not answer; zero = it answered last time
}

const (
	serverLimit = 5 * time.Second
	serverPause = 30 * time.Second // a decision asks hundreds of questions: not all may wait for a server that hangs
)

var _ scheduler.ShapeRanker = (*estimates)(nil)

// newEstimates reads --family and --server.
func newEstimates(c *cli.Context) (*estimates, error) {
	resolver, err := datadir.Of(c).Resolver()
	if err != nil {
		return nil, err
	}
	e := &estimates{resolver: resolver, family: c.String("family"), limit: serverLimit, planners: map[spec.Key]*planner.Planner{}}
	e.warn = func(err error) { fmt.Fprintln(c.App.ErrWriter, "warning:", err) }
	if _, _, err := resolver.Predictor(nil, e.family); err != nil && len(resolver.Cards()) == 0 {
		return nil, command.ForVerb(c, err)
	}
	if url := c.String("server"); url != "" {
		family := e.family
		if family == query.Auto {
			family = ""
		}
		if e.server, err = remote.New(url, remote.Options{Token: os.Getenv(command.TokenVariable), Family: family, Retries: -1}); err != nil {
			return nil, command.ForVerb(c, err)
		}
	}
	return e, nil
}

// of returns the planner of a model and accelerator.
func (e *estimates) of(k spec.Key) (*planner.Planner, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.planners[k]; ok {
		return p, nil
	}
	card, err := e.resolver.BestCard(k, e.family)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", perfmodel.ErrNotCovered, err)
	}
	predictor, _, err := e.resolver.Predictor(card, e.family)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", perfmodel.ErrNotCovered, err)
	}
	p := planner.New(predictor, planner.Options{})
	e.planners[k] = p
	return p, nil
}

// answer asks the server, if there is one that answers in time, else the planner of a key.
func answer[A any](ctx context.Context, e *estimates, k spec.Key, ask func(context.Context, scheduler.Oracle) (A, error)) (A, error) {
	if e.asks() {
		limited, cancel := context.WithTimeout(ctx, e.limit)
		a, err := ask(limited, e.server)
		cancel()
		if answers(err) || ctx.Err() != nil {
			e.answered(nil)
			return a, err
		}
		e.answered(err)
	}
	p, err := e.of(k)
	if err != nil {
		var none A
		return none, err
	}
	return ask(ctx, p)
}

// answers reports whether an error, or none, is the server's answer: not one of a server that is down or overloaded,
// wants another token or is none of pacer.
func answers(err error) bool {
	var refused *remote.Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusUnprocessableEntity
	}
	return err == nil || errors.Is(err, planner.ErrInfeasible) || errors.Is(err, perfmodel.ErrNotCovered)
}

// asks reports whether there is a server to ask now.
func (e *estimates) asks() bool {
	if e.server == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !time.Now().Before(e.silent)
}

// answered warns when the server ceases to answer, once each time.
func (e *estimates) answered(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fault = err; err == nil {
		e.silent = time.Time{}
		return
	}
	e.fault = fmt.Errorf("the server does not answer, models of this process do: %w", err)
	if e.silent.IsZero() {
		e.warn(e.fault)
	}
	e.silent = time.Now().Add(serverPause)
}

// planner returns what was wrong with the last answer of the server, nil = nothing.
func (e *estimates) planner() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault
}

func keyOf(r planner.Request) spec.Key {
	return spec.Key{Model: r.Model.Name, Accelerator: r.Accelerator.Name}
}

// Predict implements scheduler.Oracle.
func (e *estimates) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return answer(ctx, e, c.Key(), func(ctx context.Context, o scheduler.Oracle) (spec.Prediction, error) { return o.Predict(ctx, c) })
}

// Best implements scheduler.Oracle.
func (e *estimates) Best(ctx context.Context, r planner.Request) (planner.Choice, error) {
	return answer(ctx, e, keyOf(r), func(ctx context.Context, o scheduler.Oracle) (planner.Choice, error) { return o.Best(ctx, r) })
}

// Curve implements scheduler.Oracle.
func (e *estimates) Curve(ctx context.Context, r planner.Request) (planner.Curve, error) {
	return answer(ctx, e, keyOf(r), func(ctx context.Context, o scheduler.Oracle) (planner.Curve, error) { return o.Curve(ctx, r) })
}

// Rank implements scheduler.Oracle.
func (e *estimates) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	return answer(ctx, e, keyOf(r), func(ctx context.Context, o scheduler.Oracle) (planner.Ranking, error) { return o.Rank(ctx, r) })
}

// PerShape implements scheduler.ShapeRanker.
func (e *estimates) PerShape(ctx context.Context, r planner.Request, accept func(*spec.Config) bool) ([]planner.Choice, error) {
	return answer(ctx, e, keyOf(r), func(ctx context.Context, o scheduler.Oracle) ([]planner.Choice, error) {
		return scheduler.PerShape(ctx, o, r, accept)
	})
}
