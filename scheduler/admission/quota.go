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
	{Name: "devices", Default: "0", Max: 1e9, Doc: "most devices that the jobs of one tenant may request together, 0 = those of the cluster"},
}

var quotaRule = Info{
	Name:    "quota",
	Doc:     "holds jobs of a tenant while its jobs in the system request as many devices as a tenant may",
	Options: quotaOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		v := d.Values(quotaOptions)
		return quota{v.Float("devices")}, v.Err()
	},
}

// quota bounds the devices requested by a tenant's jobs in the system. A job that is
// larger than the quota enters once its tenant has no other job in the system.
type quota struct{ devices float64 }

func (q quota) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	requested, limit := s.RequestedBy(j.Tenant), cmp.Or(q.devices, float64(s.Cluster.Devices()))
	if requested == 0 || float64(requested+j.Devices) <= limit {
		return true, "", nil
	}
	return false, fmt.Sprintf("jobs of tenant %q request %s, %d more would exceed %g", j.Tenant, spec.Count(requested, "device"), j.Devices, limit), nil
}

// Line returns a line per tenant.
func (quota) Line(j *spec.Job) string { return j.Tenant }
