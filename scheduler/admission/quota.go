package admission

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var quotaOptions = []policy.Option{
	{Name: "devices", Default: "0", Max: 1e9, Doc: "that the jobs of one tenant may ask for together, 0 = as many as there are"},
}

var quotaRule = Info{
	Name:    "quota",
	Doc:     "jobs of a tenant wait outside while those inside ask for as many devices as a tenant may",
	Options: quotaOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		v := d.Values(quotaOptions)
		return quota{v.Float("devices")}, v.Err()
	},
}

// quota bounds what a tenant has inside. A job that is larger than the quota by
// itself enters once its tenant has nothing else there.
type quota struct{ devices float64 }

func (q quota) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	inside, limit := s.AskedBy(j.Tenant), cmp.Or(q.devices, float64(s.Cluster.Devices()))
	if inside == 0 || float64(inside+j.Devices) <= limit {
		return true, "", nil
	}
	return false, fmt.Sprintf("jobs of tenant %q ask for %s, %d more would be above %g", j.Tenant, spec.Count(inside, "device"), j.Devices, limit), nil
}

// Line is the tenant's.
func (quota) Line(j *spec.Job) string { return j.Tenant }
