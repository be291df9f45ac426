package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
)

// AdmissionInfo describes an admission rule.
type AdmissionInfo struct {
	Name    string
	Doc     string   // one line
	Options []Option // the first may be given without its name: load:1.2 is load:x=1.2
	New     func(Deps) (scheduler.Admission, error)
}

var admissions = named.NewSet[AdmissionInfo]("policy", "admission")

func registerAdmission(i AdmissionInfo) { admissions.Add(i.Name, i) }

// Admissions returns the registered admission rules by name.
func Admissions() []AdmissionInfo { return admissions.All() }

// LookupAdmission returns the admission rule asked for as NAME[:key=value...],
// "" meaning accept-all.
func LookupAdmission(text string) (scheduler.Admission, error) { return NewAdmission(text, Deps{}) }

// NewAdmission is LookupAdmission for a rule made of d, but for its options,
// which are those of the text.
func NewAdmission(text string, d Deps) (scheduler.Admission, error) {
	name, rest, given := strings.Cut(cmp.Or(text, "accept-all"), ":")
	info, err := admissions.Get(name)
	if err != nil {
		return nil, err
	}
	d.Options = map[string]string{}
	for rest != "" || given {
		var item string
		item, rest, given = strings.Cut(rest, ":")
		if err := info.set(d.Options, item); err != nil {
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
func (i AdmissionInfo) set(options map[string]string, item string) error {
	key, value, named := strings.Cut(item, "=")
	if !named && len(i.Options) > 0 {
		key, value = i.Options[0].Name, item
	}
	if err := (Info{Name: i.Name, Options: i.Options}).checkOption(key); err != nil {
		return err
	}
	if _, twice := options[key]; twice {
		return fmt.Errorf("policy: %s: option %s is given twice", i.Name, key)
	}
	options[key] = value
	return nil
}
