package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// calibrated is the set of jobs in the calibration rows.
type calibrated struct {
	named, described     map[string]bool // models that are known by name only, and the others
	accelerators, stacks map[string]bool
}

func calibratedTo(rows []spec.Measurement) calibrated {
	k := calibrated{named: modelsOf(rows, true), described: modelsOf(rows, false), accelerators: map[string]bool{}, stacks: map[string]bool{}}
	for i := range rows {
		k.accelerators[rows[i].Config.Accelerator.Name] = true
		k.stacks[stackOf(&rows[i].Config)] = true
	}
	return k
}

// modelsOf returns the models that some of rows only name, or describe.
func modelsOf(rows []spec.Measurement, named bool) map[string]bool {
	out := map[string]bool{}
	for i := range rows {
		if m := &rows[i].Config.Model; onlyNamed(*m) == named {
			out[m.Name] = true
		}
	}
	return out
}

// stackOf returns the name of a training stack, without release and parts: rows with the same name calibrate each other.
func stackOf(c *spec.Config) string { return stack.Of(c.Framework, c.Accelerator.Arch).Name }

// onlyNamed reports whether only the name of a model is known.
func onlyNamed(m spec.Model) bool {
	return !m.HasShape() && m.ParamCount == 0 && m.FLOPsPerSample == 0
}

// onlyNamedPart is onlyNamed for accelerators.
func onlyNamedPart(a spec.Accelerator) bool { return a.MemBps == 0 && len(a.Formats()) == 0 }

// unknown returns the names of c that neither the catalog nor its row describes, "" if there
// are none. refuse reports that c cannot be predicted because no calibration row has them.
func (k *calibrated) unknown(c *spec.Config) (what string, refuse bool) {
	unlike := k.named
	if onlyNamed(c.Model) {
		unlike = k.described
	}
	if unlike[c.Model.Name] {
		return unlikeText(c.Model.Name), true
	}
	var names []string
	if onlyNamed(c.Model) {
		_, err := catalog.ModelOnHub(c.Model.Name)
		names = appendUnknown(names, err, "or give its params_b, or layers and hidden")
		refuse = !k.named[c.Model.Name]
	}
	if onlyNamedPart(c.Accelerator) {
		_, err := catalog.AcceleratorOf(c.Accelerator.Name)
		names = appendUnknown(names, err, "")
		refuse = refuse || !k.accelerators[c.Accelerator.Name]
	}
	return strings.Join(names, "; "), refuse && len(names) > 0 && len(k.named) == 0
}

// unlikeText is the reason to leave out a row of a model that other rows describe, or describe no better.
func unlikeText(model string) string {
	return fmt.Sprintf("some rows of model %q give its layers or params_b, others its name alone: give the same in all of them", model)
}

// strange describes the names of c that nothing describes, "" if there are none.
func strange(c *spec.Config) string {
	none := calibrated{}
	what, _ := none.unknown(c)
	return what
}

// appendUnknown adds the error of an unknown name, as plan prints it.
func appendUnknown(to []string, err error, or string) []string {
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) {
		return to
	}
	text := fmt.Sprintf("%s; all: pacer ls %ss", strings.TrimPrefix(unknown.Error(), "catalog: "), unknown.What)
	if or != "" {
		text += "; " + or
	}
	return append(to, text)
}

// known reports whether calibration rows have those names of c that nothing else describes.
func (k *calibrated) known(c *spec.Config) bool {
	return (!onlyNamed(c.Model) || k.named[c.Model.Name]) && (!onlyNamedPart(c.Accelerator) || k.accelerators[c.Accelerator.Name])
}

// otherStacks warns about training stacks of the rows that no calibration row has; "" if all
// have one.
func (k *calibrated) otherStacks(stacks map[string]bool) string {
	others := maps.Clone(stacks)
	maps.DeleteFunc(others, func(s string, _ bool) bool { return k.stacks[s] })
	if len(others) == 0 || len(k.stacks) == 0 {
		return ""
	}
	return fmt.Sprintf("rows of %s, calibrated on %s: taken as different training stacks; the columns framework and source tell them apart",
		quotedNames(others), quotedNames(k.stacks))
}

// quotedNames lists names, the first few of them.
func quotedNames(set map[string]bool) string {
	const most = 4
	var out []string
	for _, s := range slices.Sorted(maps.Keys(set)) {
		if s = "'" + s + "'"; s == "''" {
			s = "no recorded stack"
		}
		out = append(out, s)
	}
	if n := len(out) - most; n > 0 {
		out = append(out[:most], fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}
