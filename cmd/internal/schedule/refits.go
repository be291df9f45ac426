package schedule

import (
	"context"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// refitCheck is the time between two looks at the fitted models.
const refitCheck = 10 * time.Second

// fit is one fitted model. Fits to the same rows are equal.
type fit struct {
	spec.Key
	family, rows string
}

// watch looks for new fits, of the server if there is one, until ctx is done. refitted reports them. A server that answers
// again gets requests again, even if no decision has made one.
func (e *estimates) watch(ctx context.Context, every time.Duration) {
	last, known := e.fits(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		now, ok := e.fits(ctx)
		if !ok {
			continue
		}
		if e.asks() {
			e.answered(nil)
		}
		if known && !slices.Equal(now, last) {
			e.mu.Lock()
			e.refits = true
			e.mu.Unlock()
		}
		last, known = now, true
	}
}

// fits returns the fitted models by key and family; ok is false if the server does not answer.
func (e *estimates) fits(ctx context.Context) (fits []fit, ok bool) {
	var cards []perfmodel.Card
	if e.server == nil {
		cards = e.resolver.Cards()
	} else {
		ctx, cancel := context.WithTimeout(ctx, e.limit)
		defer cancel()
		answer := struct{ Cards *[]perfmodel.Card }{&cards}
		if err := e.server.Do(ctx, "GET", "/v1/cards", nil, &answer); err != nil {
			return nil, false
		}
	}
	for _, c := range cards {
		fits = append(fits, fit{c.Key, c.Family, c.DataHash})
	}
	return fits, true
}

// refitted reports whether there are new fits since it was called before. Then planners are made of them.
func (e *estimates) refitted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.refits
	if e.refits = false; was {
		clear(e.planners)
	}
	return was
}
