package server

import (
	"context"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
)

// CurveRequest asks for the best throughput of every number of devices, and for
// every combination of the axes given.
type CurveRequest struct {
	ask.Question
	ask.Teaching
	ask.Space
	ask.Axes
	Network
	MaxDevices int    `json:"max_devices" minimum:"1" maximum:"65536" example:"64"`
	Objective  string `json:"objective,omitempty" enum:"throughput,goodput" doc:"What is best; throughput if absent."`
}

// maxSurface bounds the points of one surface.
const maxSurface = 1 << 16

// curve answers as pacer curve does.
func (s *Server) curve(ctx context.Context, in *CurveRequest) (ask.Curve, error) {
	axes, err := in.Axes.Planner(in.InterNodeGbps)
	if err != nil {
		return ask.Curve{}, err
	}
	lines, err := s.curveLines(ctx, in)
	if err != nil {
		return ask.Curve{}, err
	}
	if len(lines) == 1 && !in.Asked() {
		curve, err := lines[0].Planner.Curve(ctx, lines[0].Request)
		return ask.Curve{Points: ask.CurveRows(curve)}, err
	}
	found, err := ask.Surfaces(ctx, lines, axes)
	return ask.Curve{Points: found.Rows, Warnings: ask.Texts(found.None)}, err
}

// curveLines are the questions of in, one for each accelerator.
func (s *Server) curveLines(ctx context.Context, in *CurveRequest) ([]ask.Line, error) {
	names, err := ask.AcceleratorList(in.Accelerator)
	if err != nil {
		return nil, err
	}
	if err := in.CheckPoints(len(names), in.MaxDevices, maxSurface); err != nil {
		return nil, err
	}
	in.Network.into(&in.Question)
	out := make([]ask.Line, len(names))
	for i, name := range names {
		if out[i], err = s.curveLine(ctx, in, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Server) curveLine(ctx context.Context, in *CurveRequest, accelerator string) (ask.Line, error) {
	q := in.Question
	q.Accelerator = accelerator
	r, a, err := s.known.resolve(ctx, &q)
	if err != nil {
		return ask.Line{}, err
	}
	if a, err = a.within(&in.Space, in.Precision); err != nil {
		return ask.Line{}, err
	}
	r.Devices = in.MaxDevices
	err = aim(&ask.Goal{Objective: in.Objective, Teaching: in.Teaching}, &r.Request)
	return ask.Line{Request: r.Request, Planner: a.planner}, err
}
