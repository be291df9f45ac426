package admission

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var cohortsOptions = []policy.Option{
	{Name: "queues", Default: "", Example: "a@lab=16/b@lab=8+4", Doc: "TENANT[@COHORT]=DEVICES[+LIMIT][*WEIGHT]/...: nominal quota of a tenant, most devices it may borrow from its cohort, and weight in fair sharing; DEVICES may be TYPE~DEVICES&TYPE~DEVICES; tenants without a queue are rejected; empty = no quotas"},
	{Name: "reclaim", Default: "any", Example: "lower", Doc: "which jobs of borrowing queues a job within its nominal quota may evict: any, lower (of lower priority) or never"},
	{Name: "within", Default: "never", Example: "lower", Doc: "which jobs of its own queue a job may evict: lower (of lower priority) or never"},
	{Name: "borrow", Default: "never", Example: "lower", Doc: "which jobs of other borrowing queues a job that borrows may evict: lower (of lower priority) or never; fair sharing has a rule of its own"},
	{Name: "fair", Default: "false", Doc: "share what can be borrowed by dominant resource shares and weights"},
}

var cohortsRule = Info{
	Name:    "cohorts",
	Doc:     "holds jobs by quotas that tenants of a cohort lend to each other, and evicts jobs to reclaim them, like Kueue",
	Options: cohortsOptions,
	New:     newCohorts,
}

// cohorts are quotas with the semantics of Kueue's ClusterQueues, written from its documentation
// (concepts ClusterQueue, preemption and fair sharing). Differences: devices are counted as
// requested, whatever a policy grants; a job counts for one resource, the devices of the type it
// requests if its cohort has quotas for it, else all devices; there are two priorities, guaranteed
// jobs before best effort; and among equal candidates for eviction the last to arrive is evicted,
// not the last admitted.
type cohorts struct {
	queues                  map[string]*queue // by tenant; nil = no quotas
	reclaim, within, borrow string
	fair                    bool
}

// queue is the quota of a tenant.
type queue struct {
	tenant, cohort string
	nominal        map[string]int // devices by type, "" = of all others
	limit          int            // most devices of a type to borrow, -1 = no limit
	weight         float64
}

func newCohorts(d policy.Deps) (scheduler.Admission, error) {
	v := d.Values(cohortsOptions)
	a := cohorts{reclaim: v.Text("reclaim"), within: v.Text("within"), borrow: v.Text("borrow"), fair: v.Bool("fair")}
	for _, o := range []struct {
		name, value string
		allowed     []string
	}{{"reclaim", a.reclaim, []string{"any", "lower", "never"}}, {"within", a.within, []string{"lower", "never"}}, {"borrow", a.borrow, []string{"lower", "never"}}} {
		if !slices.Contains(o.allowed, o.value) {
			return nil, fmt.Errorf("option %s %q: want one of %v", o.name, o.value, o.allowed)
		}
	}
	var err error
	if a.queues, err = parseQueues(v.Text("queues")); err != nil {
		return nil, err
	}
	return a, v.Err()
}

// priority returns the priority of a job; higher runs first.
func priority(j *spec.Job) int {
	if j.Guaranteed {
		return 1
	}
	return 0
}

// usage is the devices requested by the admitted jobs, by tenant and resource.
type usage struct {
	cohorts
	used map[string]map[string]int
}

// usage counts the jobs of a snapshot.
func (a cohorts) usage(s *scheduler.Snapshot) *usage {
	u := &usage{a, map[string]map[string]int{}}
	for _, j := range s.Jobs() {
		u.add(j.Job, 1)
	}
	return u
}

func (u *usage) add(j *spec.Job, sign int) {
	if u.used[j.Tenant] == nil {
		u.used[j.Tenant] = map[string]int{}
	}
	u.used[j.Tenant][u.resource(j)] += sign * j.Devices
}

// members returns the queues of the cohort of q, q alone without one.
func (a cohorts) members(q *queue) (out []*queue) {
	if q.cohort == "" {
		return []*queue{q}
	}
	for _, o := range a.queues {
		if o.cohort == q.cohort {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(x, y *queue) int { return cmp.Compare(x.tenant, y.tenant) })
	return out
}

// lendable returns the sum of the nominal quotas of the cohort of q.
func (a cohorts) lendable(q *queue, resource string) (n int) {
	for _, m := range a.members(q) {
		n += m.nominal[resource]
	}
	return n
}

// resource returns the resource that a job counts for: the type that it requests, if its cohort has
// a quota for it.
func (a cohorts) resource(j *spec.Job) string {
	q := a.queues[j.Tenant]
	if q == nil {
		return ""
	}
	for _, m := range a.members(q) {
		if _, has := m.nominal[j.Accelerator]; has {
			return j.Accelerator
		}
	}
	return ""
}

// most returns the most devices that the jobs of q may request, borrowed ones included.
func (a cohorts) most(q *queue, resource string) int {
	all := a.lendable(q, resource)
	if q.limit < 0 {
		return all
	}
	return min(q.nominal[resource]+q.limit, all)
}

// fits reports whether j fits into its quota, with devices borrowed from its cohort.
func (u *usage) fits(j *spec.Job) bool {
	q, r := u.queues[j.Tenant], u.resource(j)
	all := j.Devices
	for _, m := range u.members(q) {
		all += u.used[m.tenant][r]
	}
	return u.used[q.tenant][r]+j.Devices <= u.most(q, r) && all <= u.lendable(q, r)
}

// borrowing reports whether q uses more than its nominal quota of a resource.
func (u *usage) borrowing(q *queue, resource string) bool {
	return u.used[q.tenant][resource] > q.nominal[resource]
}

// share returns the dominant resource share of q with extra devices of a resource: the largest share
// of the cohort's quota that q borrows, over resources, divided by its weight.
func (u *usage) share(q *queue, resource string, extra int) (share float64) {
	for r, n := range u.used[q.tenant] {
		if r != resource {
			share = max(share, u.borrowed(q, r, n))
		}
	}
	share = max(share, u.borrowed(q, resource, u.used[q.tenant][resource]+extra))
	if share == 0 {
		return 0
	}
	return share / q.weight // a weight of 0 is an infinite share
}

// borrowed returns the share of the cohort's quota of a resource that q borrows if it uses n.
func (u *usage) borrowed(q *queue, resource string, n int) float64 {
	over, all := n-q.nominal[resource], u.lendable(q, resource)
	if over <= 0 {
		return 0
	}
	if all == 0 {
		return math.Inf(1)
	}
	return float64(over) / float64(all)
}

// Refuse rejects jobs of tenants without a queue, and those that no quota is enough for.
func (a cohorts) Refuse(_ context.Context, _ spec.Cluster, j *spec.Job) (string, error) {
	if a.queues == nil {
		return "", nil
	}
	q := a.queues[j.Tenant]
	if q == nil {
		return fmt.Sprintf("tenant %q has no queue", j.Tenant), nil
	}
	if most := a.most(q, a.resource(j)); j.Devices > most {
		return fmt.Sprintf("requests %s, tenant %q may have at most %d with what it may borrow", spec.Count(j.Devices, "device"), j.Tenant, most), nil
	}
	return "", nil
}

// Line returns a line per tenant.
func (cohorts) Line(j *spec.Job) string { return j.Tenant }

// Less orders a line by priority.
func (cohorts) Less(a, b *spec.Job) bool { return priority(a) > priority(b) }

// Admit admits j if it fits into its quota, with devices borrowed from its cohort.
func (a cohorts) Admit(_ context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	if a.queues == nil || a.usage(s).fits(&j) {
		return true, "", nil
	}
	q, r := a.queues[j.Tenant], a.resource(&j)
	return false, fmt.Sprintf("%s do not fit into the quota of tenant %q: it may have %d, of %d in its cohort",
		spec.Count(j.Devices, "device"), j.Tenant, a.most(q, r), a.lendable(q, r)), nil
}

// First returns the index of the job to consider first among the first ones of their lines. With fair
// sharing it is that of the least share after admission, without it one within its nominal quota;
// ties go to the higher priority, then to the earlier submission.
func (a cohorts) First(s *scheduler.Snapshot, heads []*spec.Job) int {
	if a.queues == nil {
		return 0
	}
	u := a.usage(s)
	rank := func(j *spec.Job) float64 {
		q, r := a.queues[j.Tenant], a.resource(j)
		switch {
		case a.fair:
			return u.share(q, r, j.Devices)
		case u.used[q.tenant][r]+j.Devices > q.nominal[r]:
			return 1
		}
		return 0
	}
	best := 0
	for i, j := range heads {
		b := heads[best]
		if cmp.Or(cmp.Compare(rank(j), rank(b)), cmp.Compare(priority(b), priority(j)), cmp.Compare(j.Submit, b.Submit), cmp.Compare(j.ID, b.ID)) < 0 {
			best = i
		}
	}
	return best
}
