package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Posted is a measurement as it is sent: a spec.Measurement, in which what was
// run may be called by name.
type Posted struct {
	Config PostedConfig `json:"config" doc:"What was run."`
	spec.Measurement
}

// PostedConfig is a spec.Config of which each part is given by its figures, or
// called as in a question.
type PostedConfig struct {
	Model       Called[spec.Model]       `json:"model" doc:"By a name of the catalog or of the stored measurements, or by its figures, of which it needs a name."`
	SeqLen      int                      `json:"seq_len,omitempty" minimum:"0" maximum:"16777216" doc:"Tokens per sample; the model's own if absent."`
	Plan        Called[spec.Plan]        `json:"plan" doc:"As key=value pairs, or as an object. In pairs without a precision it is the accelerator's usual one."`
	Accelerator Called[spec.Accelerator] `json:"accelerator" doc:"By a name of the catalog or of the stored measurements, or by its figures, of which it needs a name."`
	Shape       *Called[spec.Shape]      `json:"shape,omitempty" doc:"Devices of each node, such as 8+8 or 2x8; as few of the accelerator's usual nodes as possible if absent."`
	Link        *spec.Link               `json:"link,omitempty" doc:"Interconnect, bytes/s; if absent that of the usual node of an accelerator called by name."`
	Framework   string                   `json:"framework,omitempty" maxLength:"256" doc:"Training stack, such as Megatron-LM or PyTorch FSDP."`
}

// Called is a value, or what it is called.
type Called[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON reads a string as a name, all else as a value.
func (c *Called[T]) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte(`"`)) {
		return json.Unmarshal(b, &c.Name)
	}
	return json.Unmarshal(b, &c.Value)
}

// Schema implements huma.SchemaProvider.
func (Called[T]) Schema(r huma.Registry) *huma.Schema {
	least, most := 1, 4096
	return &huma.Schema{AnyOf: []*huma.Schema{
		{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
		r.Schema(reflect.TypeFor[T](), true, ""),
	}}
}

// calledParts are the parts of a PostedConfig that may be called by name.
var calledParts = []struct {
	name string
	kind reflect.Type
}{{"model", reflect.TypeFor[spec.Model]()}, {"plan", reflect.TypeFor[spec.Plan]()}, {"accelerator", reflect.TypeFor[spec.Accelerator]()}, {"shape", reflect.TypeFor[spec.Shape]()}}

// refusePosted answers measurements of which a part is wrong within, and says so:
// the API's schema can only say that it is neither a name nor an object as it
// should be.
func (s *Server) refusePosted(w http.ResponseWriter, _ *http.Request, body []byte) bool {
	var in struct {
		Measurements []struct{ Config map[string]any }
	}
	if json.Unmarshal(body, &in) != nil {
		return false // the schema says what is wrong
	}
	schemas := s.api.OpenAPI().Components.Schemas
	var res huma.ValidateResult
	for i, m := range in.Measurements {
		for _, part := range calledParts {
			v, given := m.Config[part.name]
			if _, name := v.(string); name || !given {
				continue
			}
			at := fmt.Appendf(nil, "body.measurements[%d].config.%s", i, part.name)
			huma.Validate(schemas, schemas.Schema(part.kind, true, ""), huma.NewPathBuffer(at, len(at)), huma.ModeWriteToServer, v, &res)
		}
	}
	if len(res.Errors) == 0 {
		return false
	}
	p := newProblem(http.StatusUnprocessableEntity, "", "validation failed")
	for _, err := range res.Errors {
		var d *huma.ErrorDetail
		if errors.As(err, &d) {
			p.Errors = append(p.Errors, d)
		}
	}
	writeProblem(w, p)
	return true
}

// measurement looks up what p calls by name. Errors are *ask.FieldError or
// *catalog.UnknownError.
func (s *Server) measurement(ctx context.Context, p *Posted) (spec.Measurement, error) {
	m, in := p.Measurement, &p.Config
	c := spec.Config{SeqLen: in.SeqLen, Framework: in.Framework, Model: in.Model.Value, Plan: in.Plan.Value, Accelerator: in.Accelerator.Value}
	var err error
	if in.Model.Name != "" {
		if c.Model, err = s.desk.FindModel(ctx, in.Model.Name); err != nil {
			return m, err
		}
	}
	var node spec.Node
	if in.Accelerator.Name != "" {
		if c.Accelerator, _, err = s.desk.FindAccelerator(ctx, in.Accelerator.Name); err != nil {
			return m, err
		}
		node = ask.NodeOf(c.Accelerator)
	}
	if in.Plan.Name != "" {
		if c.Plan, err = spec.ParsePlan(in.Plan.Name); err != nil {
			return m, &ask.FieldError{Field: "plan", Value: in.Plan.Name, Err: err}
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

// shape returns the shape of plan, as few nodes of perNode devices as possible
// where none is given.
func (in *PostedConfig) shape(plan spec.Plan, perNode int) (spec.Shape, error) {
	if err := checkPlan("plan", plan); err != nil {
		return spec.Shape{}, err
	}
	switch {
	case in.Shape == nil:
		return spec.Packed(plan.Devices(), perNode), nil
	case in.Shape.Name == "":
		return in.Shape.Value, nil
	}
	shape, err := spec.ParseShape(in.Shape.Name)
	if err != nil {
		return shape, &ask.FieldError{Field: "shape", Value: in.Shape.Name, Err: err}
	}
	if n := shape.Total(); n != plan.Devices() {
		return shape, &ask.FieldError{Field: "shape", Value: in.Shape.Name, Why: fmt.Sprintf("has %d devices, the plan needs %d", n, plan.Devices())}
	}
	return shape, nil
}

// measurements looks up what was posted; the error names the measurement.
func (s *Server) measurements(ctx context.Context, posted []Posted) ([]spec.Measurement, error) {
	out := make([]spec.Measurement, len(posted))
	for i := range posted {
		m, err := s.measurement(ctx, &posted[i])
		if err != nil {
			return nil, inConfig(i, err)
		}
		out[i] = m
	}
	return out, nil
}

// inConfig is the problem with the configuration of the ith measurement.
func inConfig(i int, err error) *Problem {
	p := problem(err)
	p.Detail = fmt.Sprintf("measurement %d: %s", i, p.Detail)
	for _, e := range p.Errors {
		e.Location = fmt.Sprintf("body.measurements[%d].config.%s", i, strings.TrimPrefix(e.Location, "body."))
	}
	return p
}
