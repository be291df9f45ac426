package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// Info describes a policy.
type Info struct {
	Name    string
	Doc     string   // one line: what it does and where it is from
	Options []Option // what NAME:key=value may set
	Reads   []string // those options whose value names a file, read by New
	Servers Serving  // whether it places jobs with parameter servers
	// New makes it of its options and the rest. Errors of options need not name the
	// policy: the New of this package does.
	New func(Deps) (scheduler.Policy, error)
}

// Serving says whether a policy places jobs with parameter servers.
type Serving uint8

const (
	ServesNone Serving = iota // those without alone
	ServesToo                 // those with and those without, but not both at once
	ServesOnly                // those with alone
)

// Option is a knob of a policy.
type Option struct {
	Name, Default, Doc string
}

// Deps is what a policy is made of. The zero value works: nothing is known
// about any job, which then all run as submitted.
type Deps struct {
	Oracle  scheduler.Oracle  // the belief, safe for concurrent use; nil = none
	Placer  scheduler.Placer  // nil = packed
	Losses  scheduler.LossLog // what jobs log of their training, for one run; nil = nothing
	Seed    uint64            // for policies that draw at random
	Options map[string]string // those set, by name
	// Servers is what jobs may be granted where all train with parameter servers; nil
	// = none does.
	Servers scheduler.ServerSpace
	Quirks  compat.Quirks // of another simulator, to be had too
	// Speeds is how fast accelerators are believed to be beside each other, by
	// name, for jobs the oracle knows nothing of; 1 where it is not there.
	Speeds map[string]float64
}

var infos = named.NewSet[Info]("policy", "policy")

func register(i Info) { infos.Add(i.Name, i) }

// All returns the registered policies by name.
func All() []Info { return infos.All() }

// Lookup returns the policy of that name; the error of an unknown one lists
// those there are, nearest first.
func Lookup(name string) (Info, error) { return infos.Get(name) }

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

// Files returns the files that making the policy of s reads.
func (s Spec) Files() []string {
	info, err := Lookup(s.Name)
	if err != nil {
		return nil
	}
	var out []string
	for _, option := range info.Reads {
		if path := s.Options[option]; path != "" {
			out = append(out, path)
		}
	}
	return out
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
		if slices.ContainsFunc(out, func(o Spec) bool { return o.String() == spec.String() }) {
			return nil, fmt.Errorf("policy: %s is given twice", spec)
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
	switch serves := info.Servers; {
	case d.Servers != nil && serves == ServesNone:
		var names []string
		for _, i := range Placing(true) {
			names = append(names, i.Name)
		}
		return nil, fmt.Errorf("policy: %s places no parameter servers; those that do: %s", s.Name, strings.Join(names, ", "))
	case d.Servers == nil && serves == ServesOnly:
		return nil, fmt.Errorf("policy: %s is for jobs with parameter servers alone", s.Name)
	}
	d.Options = s.Options
	p, err := info.New(d)
	switch {
	case err == nil:
		return p, nil
	case strings.HasPrefix(err.Error(), "policy: "+info.Name+": "): // it names itself
		return nil, err
	}
	return nil, fmt.Errorf("policy %s: %w", info.Name, err)
}

// Placing returns the registered policies by name that place jobs with parameter
// servers, or those that place jobs without.
func Placing(servers bool) []Info {
	return slices.DeleteFunc(All(), func(i Info) bool {
		return servers && i.Servers == ServesNone || !servers && i.Servers == ServesOnly
	})
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
	return fmt.Errorf("policy: %s has no option %q, there are: %s", i.Name, name,
		strings.Join(named.Nearest(name, names, len(names)), ", "))
}

// number returns the value of an option within [lo, hi], or its default.
func (d Deps) number(name string, def, lo, hi float64) (float64, error) {
	s, ok := d.Options[name]
	if !ok {
		return def, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= lo && v <= hi) {
		return 0, fmt.Errorf("%s=%s is not a number in [%g, %g]", name, s, lo, hi)
	}
	return v, nil
}

// inRange is an option that is a number from lo to hi, and where it goes.
type inRange struct {
	name        string
	def, lo, hi float64
	value       *float64
}

// numbers reads options in a row, up to the first that is wrong.
func (d Deps) numbers(options ...inRange) (err error) {
	for _, o := range options {
		if *o.value, err = d.number(o.name, o.def, o.lo, o.hi); err != nil {
			return err
		}
	}
	return nil
}

// seconds returns the value of an option that is a time, or its default.
func (d Deps) seconds(name string, def time.Duration) (time.Duration, error) {
	v, err := d.number(name, def.Seconds(), 0, 1e9)
	return time.Duration(v * float64(time.Second)), err
}

// flag returns the value of a yes-or-no option, or its default.
func (d Deps) flag(name string, def bool) (bool, error) {
	s, ok := d.Options[name]
	if !ok {
		return def, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("%s=%s is neither true nor false", name, s)
	}
	return v, nil
}
