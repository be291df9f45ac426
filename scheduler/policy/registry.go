package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
)

// Info describes a policy.
type Info struct {
	Name    string
	Doc     string   // one line: what it does and where it is from
	Options []Option // what NAME:key=value may set
	New     func(Deps) (scheduler.Policy, error)
}

// Option is a knob of a policy.
type Option struct {
	Name, Default, Doc string
}

// Deps is what a policy is made of. The zero value works: nothing is known
// about any job, which then all run as submitted.
type Deps struct {
	Oracle  scheduler.Oracle  // the belief; nil = none
	Placer  scheduler.Placer  // nil = packed
	Seed    uint64            // for policies that draw at random
	Options map[string]string // those set, by name
}

var infos = map[string]Info{}

func register(i Info) {
	if _, ok := infos[i.Name]; ok {
		panic("policy: registered twice: " + i.Name)
	}
	infos[i.Name] = i
}

// All returns the registered policies by name.
func All() []Info {
	all := make([]Info, 0, len(infos))
	for _, i := range infos {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Lookup returns the policy of that name; the error names the nearest ones.
func Lookup(name string) (Info, error) {
	if i, ok := infos[name]; ok {
		return i, nil
	}
	names := make([]string, 0, len(infos))
	for _, i := range All() {
		names = append(names, i.Name)
	}
	return Info{}, fmt.Errorf("policy: unknown policy %q, %s", name, didYouMean(name, names))
}

// Spec is a policy as asked for: a name and options.
type Spec struct {
	Name    string
	Options map[string]string
}

// String writes s in the form Parse reads, options sorted by name.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	keys := make([]string, 0, len(s.Options))
	for k := range s.Options {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b.WriteString(":" + k)
		if v := s.Options[k]; v != "true" {
			b.WriteString("=" + v)
		}
	}
	return b.String()
}

// Parse reads NAME[:key[=value]...][,NAME...]; a bare key is key=true. Names
// and keys are checked, values by New.
func Parse(s string) ([]Spec, error) {
	var out []Spec
	for _, item := range strings.Split(s, ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		info, err := Lookup(parts[0])
		if err != nil {
			return nil, err
		}
		spec := Spec{Name: parts[0], Options: map[string]string{}}
		for _, p := range parts[1:] {
			k, v, given := strings.Cut(p, "=")
			if !given {
				v = "true"
			}
			if err := info.checkOption(k); err != nil {
				return nil, err
			}
			if _, twice := spec.Options[k]; twice {
				return nil, fmt.Errorf("policy: %s: option %s is given twice", info.Name, k)
			}
			spec.Options[k] = v
		}
		out = append(out, spec)
	}
	return out, nil
}

// New makes the policy s asks for; d.Options are replaced by those of s.
func New(s Spec, d Deps) (scheduler.Policy, error) {
	info, err := Lookup(s.Name)
	if err != nil {
		return nil, err
	}
	for k := range s.Options {
		if err := info.checkOption(k); err != nil {
			return nil, err
		}
	}
	d.Options = s.Options
	return info.New(d)
}

func (i Info) checkOption(name string) error {
	var names []string
	for _, o := range i.Options {
		if o.Name == name {
			return nil
		}
		names = append(names, o.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("policy: %s has no options, not %q", i.Name, name)
	}
	return fmt.Errorf("policy: %s has no option %q, %s", i.Name, name, didYouMean(name, names))
}

// number returns the value of an option within [lo, hi], or its default.
func (d Deps) number(name string, def, lo, hi float64) (float64, error) {
	s, ok := d.Options[name]
	if !ok {
		return def, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= lo && v <= hi) {
		return 0, fmt.Errorf("policy: %s=%s is not a number in [%g, %g]", name, s, lo, hi)
	}
	return v, nil
}

// flag returns the value of a yes-or-no option, or its default.
func (d Deps) flag(name string, def bool) (bool, error) {
	s, ok := d.Options[name]
	if !ok {
		return def, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("policy: %s=%s is neither true nor false", name, s)
	}
	return v, nil
}

// didYouMean lists the names closest to a wrong one, closest first, or all of
// them if none is close.
func didYouMean(wrong string, names []string) string {
	type near struct {
		name string
		dist int
	}
	var close []near
	for _, n := range names {
		d := editDistance(wrong, n)
		if d <= max(2, len(wrong)/3) || wrong != "" && strings.Contains(n, wrong) {
			close = append(close, near{n, d})
		}
	}
	if len(close) == 0 {
		return "want one of " + strings.Join(names, ", ")
	}
	slices.SortStableFunc(close, func(a, b near) int { return cmp.Compare(a.dist, b.dist) })
	out := make([]string, len(close))
	for i, n := range close {
		out[i] = n.name
	}
	return "did you mean " + strings.Join(out, " or ") + "?"
}

// editDistance is Levenshtein's: insertions, deletions and substitutions.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
