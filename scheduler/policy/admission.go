package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// AdmissionInfo describes an admission rule.
type AdmissionInfo struct {
	Name string
	Doc  string // one line
	New  func() scheduler.Admission
}

var admissions = map[string]AdmissionInfo{}

func registerAdmission(i AdmissionInfo) {
	if _, ok := admissions[i.Name]; ok {
		panic("policy: admission registered twice: " + i.Name)
	}
	admissions[i.Name] = i
}

// Admissions returns the registered admission rules by name.
func Admissions() []AdmissionInfo {
	all := make([]AdmissionInfo, 0, len(admissions))
	for _, i := range admissions {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b AdmissionInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// LookupAdmission returns the admission rule of that name, "" meaning
// accept-all.
func LookupAdmission(name string) (scheduler.Admission, error) {
	if name == "" {
		name = "accept-all"
	}
	if i, ok := admissions[name]; ok {
		return i.New(), nil
	}
	var names []string
	for _, i := range Admissions() {
		names = append(names, i.Name)
	}
	return nil, fmt.Errorf("policy: unknown admission %q, %s", name, didYouMean(name, names))
}

func init() {
	registerAdmission(AdmissionInfo{
		Name: "accept-all",
		Doc:  "every job that could run on the idle cluster",
		New:  func() scheduler.Admission { return acceptAll{} },
	})
}

type acceptAll struct{}

func (acceptAll) Admit(context.Context, *scheduler.Snapshot, spec.Job) (bool, string, error) {
	return true, "", nil
}
