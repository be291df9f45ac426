package admission

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var guaranteeOptions = []policy.Option{
	{Name: "quotas", Default: "", Doc: "TENANT=DEVICES/TENANT=DEVICES...: what the guaranteed jobs of each may ask for together; jobs of other tenants are not guaranteed; empty = no quotas"},
}

var guaranteeRule = Info{
	Name:    "guarantee",
	Doc:     "guaranteed jobs whose guarantee cannot be kept are refused; those beyond the quota of their tenant wait outside",
	Options: guaranteeOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		q, err := parseQuotas(d.Values(guaranteeOptions).Text("quotas"))
		return guarantee{candidate.NewFinder(d), q}, err
	},
}

// guarantee admits a guaranteed job only if its guarantee can be kept. Best-effort jobs
// are always admitted.
type guarantee struct {
	belief *candidate.Finder
	quotas map[string]int // devices, by tenant; nil = none
}

// parseQuotas reads TENANT=DEVICES/...
func parseQuotas(text string) (map[string]int, error) {
	if text == "" {
		return nil, nil
	}
	quotas := map[string]int{}
	for _, item := range strings.Split(text, "/") {
		tenant, value, ok := strings.Cut(item, "=")
		n, err := strconv.Atoi(value)
		if !ok || err != nil || n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("quotas=%s: %q is not TENANT=DEVICES, such as %s=8", text, item, cmp.Or(tenant, "team"))
		}
		if has, twice := quotas[tenant]; twice {
			return nil, fmt.Errorf("quotas=%s: tenant %q has two quotas, %d and %d", text, tenant, has, n)
		}
		quotas[tenant] = n
	}
	return quotas, nil
}

// CheckCluster reports quotas that promise more than there is.
func (a guarantee) CheckCluster(c spec.Cluster) error {
	sum := 0
	for _, n := range a.quotas {
		sum += n
	}
	if all := c.Devices(); sum > all {
		return fmt.Errorf("policy: the quotas come to %d guaranteed devices, the cluster has %d: not all of them can be kept; lower them or add devices", sum, all)
	}
	return nil
}

// Refuse names what makes the guarantee of j impossible.
func (a guarantee) Refuse(ctx context.Context, c spec.Cluster, j *spec.Job) (why string, err error) {
	if !j.Guaranteed {
		return "", nil
	}
	if quota, has := a.quotas[j.Tenant]; a.quotas != nil && !has {
		return fmt.Sprintf("guaranteed: tenant %q has no quota", j.Tenant), nil
	} else if has && j.Devices > quota {
		return fmt.Sprintf("guaranteed: asks for %s, the quota of tenant %q is %d", spec.Count(j.Devices, "device"), j.Tenant, quota), nil
	}
	if a.belief.Oracle == nil {
		return "", nil // all run as submitted
	}
	w, err := a.belief.AsSubmitted(ctx, c, j)
	switch {
	case err != nil:
		return "", err
	case w.Blind:
		return fmt.Sprintf("guaranteed: nothing is predicted of %s on %s, so no speed can be", j.Model.Name, spec.Count(j.Devices, "device")), nil
	case j.Plan != (spec.Plan{}) && w.Configs[0].Plan.Normal() != j.Plan.Normal():
		return fmt.Sprintf("guaranteed: plan %s of %s does not run on %s, as far as is known, so its speed cannot be", j.Plan, j.Model.Name, spec.Count(j.Devices, "device")), nil
	}
	return a.tooLate(ctx, c, j, w)
}

// tooLate names a deadline that even the fastest way misses.
func (a guarantee) tooLate(ctx context.Context, c spec.Cluster, j *spec.Job, w *candidate.Set) (why string, err error) {
	cv, err := a.belief.Curve(ctx, c, j)
	if err != nil || j.Deadline == 0 {
		return "", err
	}
	fastest := w.Configs[0].Rate
	steps := j.Steps
	if steps == 0 {
		steps = fastest * j.Duration.Seconds()
	}
	for i := range cv.Configs {
		fastest = max(fastest, cv.Configs[i].Rate)
	}
	if least, has := steps/fastest, (j.Deadline - j.Submit).Seconds(); least > has {
		return fmt.Sprintf("guaranteed: is to be done after %.0f s, and takes %.0f s at its fastest", has, least), nil
	}
	return "", nil
}

// Admit keeps within the quota of the tenant.
func (a guarantee) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	if !j.Guaranteed || a.quotas == nil {
		return true, "", nil
	}
	inside := 0
	for _, k := range s.Jobs() {
		if k.Job.Guaranteed && k.Job.Tenant == j.Tenant {
			inside += k.Job.Devices
		}
	}
	if inside+j.Devices <= a.quotas[j.Tenant] {
		return true, "", nil
	}
	return false, fmt.Sprintf("guaranteed jobs of tenant %q ask for %s, %d more would be above its quota of %d", j.Tenant, spec.Count(inside, "device"), j.Devices, a.quotas[j.Tenant]), nil
}

// Line is the tenant's for guaranteed jobs; the others do not wait.
func (a guarantee) Line(j *spec.Job) string {
	if !j.Guaranteed {
		return "best effort"
	}
	return "guaranteed: " + j.Tenant
}
