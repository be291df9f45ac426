package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// setting says what a framework's file has for one value of a part of the training stack.
type setting struct {
	part, value string // value "" = every one
	text        string // written to the file: arguments, keys or code; "" = the file has the value without it
	when        condition
	note        string // for the user, "" = none
}

// condition limits a setting or a part to some configurations. nil = all.
type condition func(*spec.Config, *stack.Parts) bool

func (w condition) holds(c *spec.Config, p *stack.Parts) bool { return w == nil || w(c, p) }

// matters has the parts that some plans and networks do not depend on.
var matters = map[string]condition{
	"attention": func(c *spec.Config, _ *stack.Parts) bool { return c.Model.AttentionLayers() > 0 },
	"adapters":  func(c *spec.Config, _ *stack.Parts) bool { return c.Model.Adapter.Kind != spec.FullTraining },
	"loss":      func(c *spec.Config, _ *stack.Parts) bool { return c.Model.Vocab > 0 },
	"weights": func(c *spec.Config, p *stack.Parts) bool {
		return half(c) && (c.Plan.Precision.Format() == spec.FP8 || p.Weights != stack.FP8 && p.Weights != stack.FP8Once)
	},
	"gradients": func(c *spec.Config, _ *stack.Parts) bool { return half(c) },
	"reduce":    func(c *spec.Config, _ *stack.Parts) bool { return half(c) && reduces(c) },
	"overlap":   func(c *spec.Config, _ *stack.Parts) bool { return reduces(c) },
	"zero":      func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO > 0 },
	"tp":        func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.TP > 1 },
	"sequence":  func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.TP > 1 && !c.Plan.SequenceParallel },
	"gathered":  func(c *spec.Config, p *stack.Parts) bool { return c.Plan.TP > 1 && sequenceParallel(c, p) },
	"cp":        func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.CP > 1 },
	"ep":        func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.EP > 1 },
	"dispatch":  func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.EP > 1 },
	"routing":   func(c *spec.Config, _ *stack.Parts) bool { return c.Model.Experts > 0 },
	"sends":     func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.PP > 1 && c.Plan.VirtualStages > 1 },
	"stages":    func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.PP > 3 },
	"recompute": func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.Recompute == spec.RecomputeSelective },
	"outputs":   func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.PP > 1 },
}

// half reports whether c trains in 16 bits or fewer.
func half(c *spec.Config) bool { return c.Plan.Precision != spec.FP32 && c.Plan.Precision != spec.TF32 }

// reduces reports whether devices reduce gradients among themselves.
func reduces(c *spec.Config) bool { return c.Plan.DP*c.Plan.CP > 1 }

func sequenceParallel(c *spec.Config, p *stack.Parts) bool {
	return c.Plan.SequenceParallel || p.Sequence == stack.Always
}

// parts returns the parts of the training stack that c is predicted with: that of f unless c names one, and the most
// likely one where c leaves it open.
func (f *Framework) parts(c *spec.Config) *stack.Parts {
	of := stack.Of(cmp.Or(c.Framework, f.Stack), c.Accelerator.Arch)
	weights := of.Weight[stack.UseOf(&c.Plan)][:of.N]
	return &of.Stacks[slices.Index(weights, slices.Max(weights))].Parts
}

// follow returns the settings of the parts that c is predicted with, in their order, and the parts, as "PART=VALUE", for
// which f has none. A value that f.Stack has too needs no setting, unless f.settings has one under a condition.
func (f *Framework) follow(c *spec.Config) (settings []setting, without []string) {
	p, own := f.parts(c), &stack.Of(f.Stack, "").Stacks[0].Parts
	for _, kind := range stack.Kinds() {
		value := kind.Of(p)
		if !matters[kind.Name].holds(c, p) {
			continue
		}
		found, usual := false, value == kind.Of(own)
		for _, s := range f.settings {
			if s.part != kind.Name || s.value != "" && s.value != value {
				continue
			}
			if usual = false; s.when.holds(c, p) {
				settings, found = append(settings, s), true
				break
			}
		}
		if !found && !usual {
			without = append(without, kind.Name+"="+value)
		}
	}
	return settings, without
}

// written returns the texts of the settings of one part, or of all with part "".
func written(settings []setting, part string) (out []string) {
	for _, s := range settings {
		if s.text != "" && (part == "" || s.part == part) {
			out = append(out, s.text)
		}
	}
	return out
}

// stackNotes names the parts of the predicted training stack that the file does not set.
func (f *Framework) stackNotes(c *spec.Config) (out []string) {
	settings, without := f.follow(c)
	for _, s := range settings {
		if s.note != "" {
			out = append(out, s.note)
		}
	}
	switch {
	case len(without) == 1:
		out = append(out, fmt.Sprintf("the prediction has %s: the setting for that is not written", without[0]))
	case len(without) > 1:
		out = append(out, fmt.Sprintf("the prediction has %s: the settings for these are not written", strings.Join(without, ", ")))
	}
	return out
}
