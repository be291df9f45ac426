package policy

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	registerAdmission(AdmissionInfo{
		Name: "accept-all",
		Doc:  "every job that could run on the idle cluster",
		New:  func(Deps) (scheduler.Admission, error) { return acceptAll{}, nil },
	})
}

type acceptAll struct{}

func (acceptAll) Admit(context.Context, *scheduler.Snapshot, spec.Job) (bool, string, error) {
	return true, "", nil
}
