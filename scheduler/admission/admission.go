package admission

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Variant replaces rules of this package. The zero value replaces none.
type Variant struct {
	// Overshoot makes load ignore the demand of the job itself.
	Overshoot bool
}

// Info describes an admission rule.
type Info struct {
	Name    string
	Doc     string          // one line
	Options []policy.Option // the first one's name may be left out: load:1.2 is load:x=1.2
	New     func(policy.Deps) (scheduler.Admission, error)
}

// rules is the table of admission rules.
var rules = func() *named.Set[Info] {
	s := named.NewSet[Info]("policy", "admission")
	for _, i := range []Info{acceptAllRule, cohortsRule, deadlineRule, guaranteeRule, loadRule, quotaRule} {
		if err := policy.CheckOptions(i.Options, nil); err != nil {
			panic(fmt.Sprintf("admission: %s: %v", i.Name, err))
		}
		s.Add(i.Name, i)
	}
	return s
}()

// All returns the registered admission rules by name.
func All() []Info { return rules.All() }

// Lookup returns the admission rule for NAME[:key=value...]; "" = accept-all.
func Lookup(text string) (scheduler.Admission, error) { return New(text, policy.Deps{}) }

// New is Lookup for a rule with dependencies d. Its options are those of the text.
func New(text string, d policy.Deps) (scheduler.Admission, error) {
	name, rest, given := strings.Cut(cmp.Or(text, "accept-all"), ":")
	info, err := rules.Get(name)
	if err != nil {
		return nil, err
	}
	options := map[string]string{}
	d = d.WithOptions(options)
	for rest != "" || given {
		var item string
		item, rest, given = strings.Cut(rest, ":")
		if err := info.set(options, item); err != nil {
			return nil, err
		}
	}
	a, err := info.New(d)
	if err != nil {
		return nil, fmt.Errorf("admission %s: %w", info.Name, err)
	}
	return a, nil
}

// set reads key=value, or the value of the first option, into options.
func (i Info) set(options map[string]string, item string) error {
	key, value, named := strings.Cut(item, "=")
	if !named && len(i.Options) > 0 {
		key, value = i.Options[0].Name, item
	}
	if err := (policy.Info{Name: i.Name, Options: i.Options}).CheckOption(key); err != nil {
		return err
	}
	if _, twice := options[key]; twice {
		return fmt.Errorf("policy: %s: option %s is given twice", i.Name, key)
	}
	options[key] = value
	return nil
}
