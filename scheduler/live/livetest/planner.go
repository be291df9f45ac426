package livetest

import (
	"context"
	"fmt"
	"os"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Planner is an Oracle that does not answer while a file exists, as one behind a server that restarts.
type Planner struct {
	scheduler.Oracle
	Down string // the file
}

// err is the error of an answer.
func (p Planner) err() error {
	if _, err := os.Stat(p.Down); p.Down == "" || err != nil {
		return nil
	}
	return fmt.Errorf("livetest: the planner does not answer while %s exists", p.Down)
}

// Predict implements scheduler.Oracle.
func (p Planner) Predict(ctx context.Context, c spec.Config) (out spec.Prediction, err error) {
	if err := p.err(); err != nil {
		return out, err
	}
	return p.Oracle.Predict(ctx, c)
}

// Best implements scheduler.Oracle.
func (p Planner) Best(ctx context.Context, r planner.Request) (out planner.Choice, err error) {
	if err := p.err(); err != nil {
		return out, err
	}
	return p.Oracle.Best(ctx, r)
}

// Curve implements scheduler.Oracle.
func (p Planner) Curve(ctx context.Context, r planner.Request) (out planner.Curve, err error) {
	if err := p.err(); err != nil {
		return out, err
	}
	return p.Oracle.Curve(ctx, r)
}

// Rank implements scheduler.Oracle.
func (p Planner) Rank(ctx context.Context, r planner.Request) (out planner.Ranking, err error) {
	if err := p.err(); err != nil {
		return out, err
	}
	return p.Oracle.Rank(ctx, r)
}
