package admission

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var acceptAllRule = Info{
	Name: "accept-all",
	Doc:  "admits every job that could run on the idle cluster",
	New:  func(policy.Deps) (scheduler.Admission, error) { return acceptAll{}, nil },
}

type acceptAll struct{}

func (acceptAll) Admit(context.Context, *scheduler.Snapshot, spec.Job) (bool, string, error) {
	return true, "", nil
}
