package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// MeasurementBody is a spec.Measurement with a configuration that may use names.
type MeasurementBody struct {
	Config ConfigBody `json:"config" doc:"What was run."`
	spec.Measurement
}

// ConfigBody is a spec.Config with parts given by name, as in other requests, or by
// their figures.
type ConfigBody struct {
	Model       NameOr[spec.Model]       `json:"model" doc:"By a name of the catalog or of the stored measurements, or by its figures, which include a name."`
	SeqLen      int                      `json:"seq_len,omitempty" minimum:"0" maximum:"16777216" doc:"Tokens per sample; the model's own if absent."`
	Plan        NameOr[spec.Plan]        `json:"plan" doc:"As key=value pairs, or as an object. In pairs without a precision it is the accelerator's usual one."`
	Accelerator NameOr[spec.Accelerator] `json:"accelerator" doc:"By a name of the catalog or of the stored measurements, or by its figures, which include a name."`
	Shape       *NameOr[spec.Shape]      `json:"shape,omitempty" doc:"Devices of each node, such as 8+8 or 2x8; as few of the accelerator's usual nodes as possible if absent."`
	Link        *spec.Link               `json:"link,omitempty" doc:"Interconnect, bytes/s; if absent that of the usual node of an accelerator called by name."`
	Framework   string                   `json:"framework,omitempty" maxLength:"256" doc:"Training stack, such as Megatron Core@0.13 or FSDP; any name."`
	AloneStage  int                      `json:"alone_stage,omitempty" minimum:"0" maximum:"1048576" doc:"The row is of one rank of this pipeline stage, from 1, without the others and without communication; plan and shape are those of all ranks. 0: a whole step."`
}

// NameOr is a value or its name.
type NameOr[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads a string as a name and anything else as a value.
func (c *NameOr[T]) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte(`"`)) {
		return json.Unmarshal(b, &c.Name)
	}
	return json.Unmarshal(b, &c.Value)
}

// Schema implements huma.SchemaProvider.
func (NameOr[T]) Schema(r huma.Registry) *huma.Schema {
	least, most := 1, 4096
	return &huma.Schema{AnyOf: []*huma.Schema{
		{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
		r.Schema(reflect.TypeFor[T](), true, ""),
	}}
}

// measurement looks up the names in p. Errors are *query.FieldError or
// *catalog.UnknownError.
func (s *Server) measurement(ctx context.Context, p *MeasurementBody) (spec.Measurement, error) {
	m, in := p.Measurement, &p.Config
	c := spec.Config{SeqLen: in.SeqLen, Framework: in.Framework, AloneStage: in.AloneStage, Model: in.Model.Value, Plan: in.Plan.Value, Accelerator: in.Accelerator.Value}
	var err error
	if in.Model.Name != "" {
		if c.Model, err = s.resolver.FindModel(ctx, in.Model.Name); err != nil {
			return m, err
		}
	}
	var node spec.Node
	if in.Accelerator.Name != "" {
		if c.Accelerator, _, err = s.resolver.FindAccelerator(ctx, in.Accelerator.Name); err != nil {
			return m, err
		}
		node = query.NodeOf(c.Accelerator)
	}
	if in.Plan.Name != "" {
		if c.Plan, err = spec.ParsePlan(in.Plan.Name); err != nil {
			return m, &query.FieldError{Field: "plan", Value: in.Plan.Name, Err: err}
		}
		c.Plan.Precision = cmp.Or(c.Plan.Precision, c.Accelerator.DefaultPrecision())
	}
	c.Link = node.Link
	if in.Link != nil {
		c.Link = *in.Link
	}
	if c.Shape, err = in.shape(c.Plan, cmp.Or(node.Devices, 8)); err != nil {
		return m, err
	}
	m.Config = c
	return m, nil
}

// shape returns the shape given, or as few nodes of perNode devices as plan needs.
func (in *ConfigBody) shape(plan spec.Plan, perNode int) (spec.Shape, error) {
	if err := checkPlan("plan", plan); err != nil {
		return spec.Shape{}, err
	}
	switch {
	case in.Shape == nil:
		return spec.Packed(plan.Devices(), perNode), nil
	case in.Shape.Name == "":
		shape := in.Shape.Value
		return shape, checkShape(&shape)
	}
	shape, err := spec.ParseShape(in.Shape.Name)
	if err != nil {
		return shape, &query.FieldError{Field: "shape", Value: in.Shape.Name, Err: err}
	}
	if n := shape.Total(); n != plan.Devices() {
		return shape, &query.FieldError{Field: "shape", Value: in.Shape.Name, Why: fmt.Sprintf("has %d devices, the plan needs %d", n, plan.Devices())}
	}
	return shape, nil
}

// measurements looks up the names of all bodies; the error has the index of the
// measurement.
func (s *Server) measurements(ctx context.Context, posted []MeasurementBody) ([]spec.Measurement, error) {
	out := make([]spec.Measurement, len(posted))
	var shapes shapeBytes
	for i := range posted {
		m, err := s.measurement(ctx, &posted[i])
		if err != nil {
			return nil, inConfig(i, err)
		}
		if err := shapes.add(i, &m); err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

// shapeBytes counts the bytes of the shapes of a request's measurements. Each has 2 for every node of "1000000x1".
type shapeBytes int

// maxShapeBytes bounds them.
const maxShapeBytes = 16 << 20

// add counts the shape of m, measurement i.
func (b *shapeBytes) add(i int, m *spec.Measurement) error {
	if *b += shapeBytes(len(m.Config.Shape.Devices)); *b > maxShapeBytes {
		return problem.New(http.StatusRequestEntityTooLarge, "", fmt.Sprintf("measurements 0 to %d are on so many nodes that their shapes take more than %d bytes: post fewer at a time", i, maxShapeBytes))
	}
	return nil
}

// inConfig returns the problem with the configuration of measurement i.
func inConfig(i int, err error) *problem.Problem {
	p := problem.Of(err)
	p.Detail = fmt.Sprintf("measurement %d: %s", i, p.Detail)
	for _, e := range p.Errors {
		e.Location = fmt.Sprintf("body.measurements[%d].config.%s", i, strings.TrimPrefix(e.Location, "body."))
	}
	return p
}
