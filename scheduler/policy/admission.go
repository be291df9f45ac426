package policy

import (
	"cmp"
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
)

// AdmissionInfo describes an admission rule.
type AdmissionInfo struct {
	Name string
	Doc  string // one line
	New  func() scheduler.Admission
}

var admissions = named.NewSet[AdmissionInfo]("policy", "admission")

func registerAdmission(i AdmissionInfo) { admissions.Add(i.Name, i) }

// Admissions returns the registered admission rules by name.
func Admissions() []AdmissionInfo { return admissions.All() }

// LookupAdmission returns the admission rule of that name, "" meaning
// accept-all.
func LookupAdmission(name string) (scheduler.Admission, error) {
	i, err := admissions.Get(cmp.Or(name, "accept-all"))
	if err != nil {
		return nil, err
	}
	return i.New(), nil
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
