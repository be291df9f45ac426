package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
)

// Info describes a policy.
type Info struct {
	Name    string
	Doc     string   // one line: what it does and where it is from
	Options []Option // what NAME:key=value may set
	Reads   []string // options with a file name as value; New reads the file
	Servers Serving  // whether it places jobs with parameter servers
	// New returns the policy. Errors of options need not name the policy: Registry.New
	// adds its name.
	New func(Deps) (scheduler.Policy, error)
}

// Serving says whether a policy places jobs with parameter servers.
type Serving uint8

const (
	ServesNone Serving = iota // only jobs without
	ServesToo                 // jobs with and jobs without, but not both in one run
	ServesOnly                // only jobs with
)

// Deps are the inputs of a policy's constructor. The zero value works: there are no
// predictions, and all jobs run as submitted.
type Deps struct {
	Oracle  scheduler.Oracle  // predictions, safe for concurrent use; nil = none
	Placer  scheduler.Placer  // nil = packed
	Losses  scheduler.LossLog // training losses that jobs log, for one run; nil = none
	Seed    uint64            // for policies that draw at random
	Options map[string]string // options that were set, by name
	// Servers has the allowed numbers of replicas and servers if all jobs train with
	// parameter servers; nil = no job does.
	Servers scheduler.ServerSpace
	// HostSpeeds predicts the effect of CPUs and memory of hosts on speeds; nil = unknown.
	HostSpeeds scheduler.HostSpeeds
	// Variants replace rules of policies; none are needed. See VariantOf.
	Variants Variants
	// Registry is the table the policy is from, set by its New.
	Registry *Registry
	// Speeds are relative speeds of accelerators by name, for jobs without a prediction;
	// missing ones are 1.
	Speeds map[string]float64
	// Audit makes a policy check its own promises at every decision, such as
	// order.Ranking.Steady, in time proportional to the jobs. For tests.
	Audit bool

	declared *Info // the policy that is made, set by Registry.New; nil = unknown
}

// Registry is a table of policies, by name.
type Registry struct{ infos *named.Set[Info] }

// NewRegistry returns the table of some policies. It panics if two have one name, or if the
// options of one are not valid, see CheckOptions.
func NewRegistry(infos ...Info) *Registry {
	r := &Registry{named.NewSet[Info]("policy", "policy")}
	for _, i := range infos {
		if err := CheckOptions(i.Options, i.Reads); err != nil {
			panic(fmt.Sprintf("policy: %s: %v", i.Name, err))
		}
		r.infos.Add(i.Name, i)
	}
	return r
}

// All returns the policies, ascending by name.
func (r *Registry) All() []Info { return r.infos.All() }

// Lookup returns the policy of a name. The error for an unknown name lists the
// known ones, the most similar first.
func (r *Registry) Lookup(name string) (Info, error) { return r.infos.Get(name) }

// Spec is a name of a policy and options.
type Spec struct {
	Name    string
	Options map[string]string
}

// String writes s in the form Parse reads, options sorted by name.
func (s Spec) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for _, k := range slices.Sorted(maps.Keys(s.Options)) {
		b.WriteString(":" + k)
		if v := s.Options[k]; v != "true" {
			b.WriteString("=" + v)
		}
	}
	return b.String()
}

// Files returns the files that making the policy of s reads.
func (r *Registry) Files(s Spec) []string {
	info, err := r.Lookup(s.Name)
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
func (r *Registry) Parse(s string) ([]Spec, error) {
	var out []Spec
	for _, item := range strings.Split(s, ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		info, err := r.Lookup(parts[0])
		if err != nil {
			return nil, err
		}
		spec := Spec{Name: parts[0], Options: map[string]string{}}
		for _, p := range parts[1:] {
			k, v, given := strings.Cut(p, "=")
			if !given {
				v = "true"
			}
			if err := info.CheckOption(k); err != nil {
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

// New returns the policy of s. The options of s replace d.Options.
func (r *Registry) New(s Spec, d Deps) (scheduler.Policy, error) {
	info, err := r.Lookup(s.Name)
	if err != nil {
		return nil, err
	}
	for k := range s.Options {
		if err := info.CheckOption(k); err != nil {
			return nil, err
		}
	}
	switch serves := info.Servers; {
	case d.Servers != nil && serves == ServesNone:
		var names []string
		for _, i := range r.Placing(true) {
			names = append(names, i.Name)
		}
		return nil, fmt.Errorf("policy: %s places no parameter servers; those that do: %s", s.Name, strings.Join(names, ", "))
	case d.Servers == nil && serves == ServesOnly:
		return nil, fmt.Errorf("policy: %s is only for jobs with parameter servers", s.Name)
	}
	d.Options, d.Registry, d.declared = s.Options, r, &info
	p, err := info.New(d)
	switch {
	case err == nil:
		return p, nil
	case strings.HasPrefix(err.Error(), "policy: "+info.Name+": "): // it has the name already
		return nil, err
	}
	return nil, fmt.Errorf("policy %s: %w", info.Name, err)
}

// Placing returns the registered policies by name that place jobs with parameter
// servers, or those that place jobs without.
func (r *Registry) Placing(servers bool) []Info {
	return slices.DeleteFunc(r.All(), func(i Info) bool {
		return servers && i.Servers == ServesNone || !servers && i.Servers == ServesOnly
	})
}

// CheckOption returns an error that lists the options if i has none of a name.
func (i Info) CheckOption(name string) error {
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
