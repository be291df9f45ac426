package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner"
)

// ErrCannotExpress means that a framework has no settings for a plan. Errors that
// wrap it are *Inexpressible.
var ErrCannotExpress = errors.New("the framework cannot express the plan")

// Framework is a training framework that jobs can be started with.
type Framework struct {
	Name, Doc string
	Version   string // the version of the framework that settings are for
	Stack     string // its training stack in that version, in the form of package stack
	File      string // default name of the output

	settings []setting // of parts of the training stack
	program  bool      // whether the user's program makes the network, and the file does not describe it

	// lacks returns the parts of a normal and legal configuration without a setting.
	lacks func(*spec.Config, *stack.Parts) []lack
	// write writes a configuration that lacks nothing.
	write func(Framework, *spec.Config, *spec.Details) Script
}

// Options configure EmitWith. The zero value is that of Emit.
type Options struct {
	// Details of the network. Unknown ones get the settings usual with its MLP, and
	// the notes name these.
	Details spec.Details
	// File is the name of the output, "" = Framework.File.
	File string
}

// Script is a file that starts a job.
type Script struct {
	File  string   // its name
	Text  string   // its content
	Notes []string // further steps for the user
}

// lack is a part of a plan that a framework has no setting for.
type lack struct {
	field string // of the plan's text form; "model" for the network
	value string
	why   string // what the framework does instead, or needs
}

// Inexpressible names the parts of a plan without settings in a framework, and the
// frameworks that have them.
type Inexpressible struct {
	Framework string
	Parts     []Part
	Able      []string // frameworks that can express the whole plan
}

// Part is one part of a plan that cannot be expressed.
type Part struct {
	Field, Value string // such as zero, 1
	Why          string
	Able         []string // frameworks that can express this part
}

func (p Part) String() string {
	able := "none here can"
	if len(p.Able) > 0 {
		able = strings.Join(p.Able, " and ") + " can"
	}
	return fmt.Sprintf("%s=%s: %s; %s", p.Field, p.Value, p.Why, able)
}

func (e *Inexpressible) Error() string {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		parts[i] = p.String()
	}
	return fmt.Sprintf("launch: %s cannot express %s", e.Framework, strings.Join(parts, "; "))
}

func (e *Inexpressible) Unwrap() error { return ErrCannotExpress }

// frameworks is the table of frameworks.
var frameworks = func() *named.Set[Framework] {
	s := named.NewSet[Framework]("launch", "framework")
	for _, f := range []Framework{accelerate, deepspeed, megatron, torchrun, torchtitan} {
		s.Add(f.Name, f)
	}
	return s
}()

// Frameworks returns every framework, by name.
func Frameworks() []Framework { return frameworks.All() }

// Lookup returns the framework with that name. The error for an unknown name lists
// all names, the nearest first.
func Lookup(name string) (Framework, error) { return frameworks.Get(name) }

// Emit writes the file that starts c. The shape of c gives the nodes and must have
// the devices of the plan. A part that f cannot express is an *Inexpressible error.
func (f Framework) Emit(c spec.Config) (Script, error) { return f.EmitWith(c, Options{}) }

// EmitWith is Emit with options.
func (f Framework) EmitWith(c spec.Config, o Options) (Script, error) {
	c.Plan = c.Plan.Normal()
	if err := check(&c); err != nil {
		return Script{}, err
	}
	if missing := f.missing(&c); len(missing) > 0 {
		return Script{}, f.inexpressible(&c, missing)
	}
	f.File = cmp.Or(o.File, f.File)
	s := f.write(f, &c, &o.Details)
	s.File = f.File
	if m := &c.Model; m.WindowLayers > 0 && m.Window < c.Seq() {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d layers of %s see only %d tokens: the window is not written", m.WindowLayers, m.Layers, m.Name, m.Window))
	}
	if m := &c.Model; m.Packed > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("samples are packed documents of %d tokens in the mean: packing is not written, the data set decides", m.Packed))
	}
	if c.Model.Adapter.Kind != spec.FullTraining {
		s.Notes = append(s.Notes, adapterNote(&c, f.parts(&c)))
	}
	s.Notes = append(s.Notes, f.stackNotes(&c)...)
	return s, nil
}

// missing returns the parts of c that f has no setting for, or that no framework's file describes.
func (f Framework) missing(c *spec.Config) []lack {
	out := f.lacks(c, f.parts(c))
	if a := c.Model.Adapter; a.Kind != spec.FullTraining && !f.program {
		out = append(out, lack{"adapter", a.String(), "adapters are not written, the file would train all weights"})
	}
	for _, part := range []struct {
		has bool
		why string
	}{
		{c.Model.SSMLayers > 0 || c.Model.MLPLayers > 0, "layers with a state-space mixer are not written"},
		{c.Model.ExpertHidden > 0, "experts of projected tokens are not written"},
		{c.Model.Tower != (spec.Tower{}), "the vision tower is not written"},
	} {
		if part.has {
			out = append(out, lack{"model", c.Model.Name, part.why})
		}
	}
	return out
}

// Able returns the names of the frameworks that can express the whole of c.
func Able(c spec.Config) []string {
	c.Plan = c.Plan.Normal()
	return able(&c, "")
}

// able returns the frameworks that can express c, or its field where that is given.
func able(c *spec.Config, field string) (out []string) {
	for _, f := range frameworks.All() {
		missing := f.missing(c)
		if field == "" && len(missing) == 0 || field != "" && !slices.ContainsFunc(missing, func(l lack) bool { return l.field == field }) {
			out = append(out, f.Name)
		}
	}
	return out
}

func (f Framework) inexpressible(c *spec.Config, missing []lack) error {
	e := &Inexpressible{Framework: f.Name, Able: able(c, "")}
	for _, l := range missing {
		e.Parts = append(e.Parts, Part{Field: l.field, Value: l.value, Why: l.why, Able: able(c, l.field)})
	}
	return e
}

// check reports an illegal plan, or a shape with other devices than the plan.
func check(c *spec.Config) error {
	if err := c.Plan.CheckBounds(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if err := c.Model.Validate(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if c.Shape.Total() == 0 {
		return fmt.Errorf("launch: %s: no shape: how many devices has each node?", c.Model.Name)
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if why := planner.CannotOffload(&c.Plan); why != "" {
		return fmt.Errorf("launch: %s: %s", c.Model.Name, why)
	}
	return nil
}
