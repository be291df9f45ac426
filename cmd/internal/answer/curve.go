package answer

import (
	"context"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// CurveRequest asks for the best throughput on every number of devices, for every
// combination of the axes given.
type CurveRequest struct {
	query.Request
	query.BatchRange
	query.Space
	query.Axes
	Described
	MaxDevices int    `json:"max_devices" minimum:"1" maximum:"65536" example:"64"`
	Objective  string `json:"objective,omitempty" enum:"throughput,goodput" doc:"Criterion of the best plan; throughput if absent."`
}

// maxSurface bounds the points of one surface.
const maxSurface = 1 << 16

// Curve answers like pacer curve.
func (c *Answerer) Curve(ctx context.Context, in *CurveRequest) (query.Curve, error) {
	axes, err := in.Axes.Planner(in.InterNodeGbps)
	if err != nil {
		return query.Curve{}, err
	}
	lines, err := c.curveLines(ctx, in)
	if err != nil {
		return query.Curve{}, err
	}
	if len(lines) == 1 && !in.Given() {
		curve, err := lines[0].Planner.Curve(ctx, lines[0].Request)
		return query.Curve{Points: query.CurveRows(curve)}, err
	}
	found, err := query.Surfaces(ctx, lines, axes)
	return query.Curve{Points: found.Rows, Warnings: query.Texts(found.None)}, err
}

// curveLines are the requests of in, one for each accelerator.
func (c *Answerer) curveLines(ctx context.Context, in *CurveRequest) ([]query.SurfaceLine, error) {
	names, err := query.AcceleratorList(in.Accelerator)
	if err != nil {
		return nil, err
	}
	if len(names) > 1 && in.Device != nil {
		return nil, &query.FieldError{Field: "accelerator", Value: in.Accelerator, Why: "lists several types, but {device} describes one: give either"}
	}
	if err := in.CheckPoints(len(names), in.MaxDevices, maxSurface); err != nil {
		return nil, err
	}
	in.Into(&in.Request)
	out := make([]query.SurfaceLine, len(names))
	for i, name := range names {
		if out[i], err = c.curveLine(ctx, in, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Answerer) curveLine(ctx context.Context, in *CurveRequest, accelerator string) (query.SurfaceLine, error) {
	q := in.Request
	q.Accelerator = accelerator
	r, a, err := c.Resolve(ctx, &q)
	if err != nil {
		return query.SurfaceLine{}, err
	}
	if a, err = a.within(&in.Space, in.Precision); err != nil {
		return query.SurfaceLine{}, err
	}
	if err := r.On(&q, in.MaxDevices); err != nil {
		return query.SurfaceLine{}, err
	}
	err = aim(&query.Goal{Objective: in.Objective, BatchRange: in.BatchRange}, &r.Request)
	return query.SurfaceLine{Request: r.Request, Planner: a.Planner}, err
}
