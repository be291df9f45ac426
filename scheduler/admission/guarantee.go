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
	{Name: "quotas", Default: "", Example: "a=16/b=8", Doc: "TENANT=DEVICES/TENANT=DEVICES...: most devices that the guaranteed jobs of each tenant may request together; tenants without a quota have no guarantees; empty = no quotas"},
}

var guaranteeRule = Info{
	Name:    "guarantee",
	Doc:     "rejects guaranteed jobs if their guarantee cannot be kept, and holds those beyond the quota of their tenant",
	Options: guaranteeOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		q, err := parseQuotas(d.Values(guaranteeOptions).Text("quotas"))
		return guarantee{candidate.NewFinder(d), q}, err
	},
}

// guarantee admits a guaranteed job only if its guarantee can be kept. Best-effort jobs
// are always admitted.
type guarantee struct {
	finder *candidate.Finder
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

// CheckCluster reports quotas that add up to more devices than the cluster has.
func (a guarantee) CheckCluster(c spec.Cluster) error {
	sum := 0
	for _, n := range a.quotas {
		sum += n
	}
	if all := c.Devices(); sum > all {
		return fmt.Errorf("policy: the quotas add up to %d guaranteed devices, the cluster has %d: lower them or add devices", sum, all)
	}
	return nil
}

// Refuse implements scheduler.Refuser: it returns the reason why the guarantee of j cannot
// be kept.
func (a guarantee) Refuse(ctx context.Context, c spec.Cluster, j *spec.Job) (why string, err error) {
	if !j.Guaranteed {
		return "", nil
	}
	if quota, has := a.quotas[j.Tenant]; a.quotas != nil && !has {
		return fmt.Sprintf("guaranteed: tenant %q has no quota", j.Tenant), nil
	} else if has && j.Devices > quota {
		return fmt.Sprintf("guaranteed: requests %s, the quota of tenant %q is %d", spec.Count(j.Devices, "device"), j.Tenant, quota), nil
	}
	if a.finder.Oracle == nil {
		return "", nil // all run as submitted
	}
	w, err := a.finder.AsSubmitted(ctx, c, j)
	switch {
	case err != nil:
		return "", err
	case w.Blind:
		return fmt.Sprintf("guaranteed: no prediction for %s on %s, so no speed can be guaranteed", j.Model.Name, spec.Count(j.Devices, "device")), nil
	case j.Plan != (spec.Plan{}) && w.Configs[0].Plan.Normal() != j.Plan.Normal():
		return fmt.Sprintf("guaranteed: plan %s of %s is not feasible on %s, so its speed cannot be guaranteed", j.Plan, j.Model.Name, spec.Count(j.Devices, "device")), nil
	}
	return a.tooLate(ctx, c, j, w)
}

// tooLate returns the reason if even the fastest candidate misses the deadline.
func (a guarantee) tooLate(ctx context.Context, c spec.Cluster, j *spec.Job, w *candidate.Set) (why string, err error) {
	cv, err := a.finder.Curve(ctx, c, j)
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
		return fmt.Sprintf("guaranteed: the deadline is %.0f s after submission, the job takes at least %.0f s", has, least), nil
	}
	return "", nil
}

// Admit admits a guaranteed job if its tenant's jobs stay within the quota.
func (a guarantee) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	if !j.Guaranteed || a.quotas == nil {
		return true, "", nil
	}
	requested := 0
	for _, k := range s.Jobs() {
		if k.Job.Guaranteed && k.Job.Tenant == j.Tenant {
			requested += k.Job.Devices
		}
	}
	if requested+j.Devices <= a.quotas[j.Tenant] {
		return true, "", nil
	}
	return false, fmt.Sprintf("guaranteed jobs of tenant %q request %s, %d more would exceed its quota of %d", j.Tenant, spec.Count(requested, "device"), j.Devices, a.quotas[j.Tenant]), nil
}

// Line returns a line per tenant for guaranteed jobs. Other jobs are never held.
func (a guarantee) Line(j *spec.Job) string {
	if !j.Guaranteed {
		return "best effort"
	}
	return "guaranteed: " + j.Tenant
}
