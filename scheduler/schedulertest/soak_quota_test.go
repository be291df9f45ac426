package schedulertest_test

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// soakQuota is the quota of a tenant under admission rule cohorts.
type soakQuota struct {
	tenant, cohort string
	nominal        map[string]int // by accelerator, "" = all others
	limit          int            // -1 = none
	weight         float64
}

// drawQuotas draws quotas and evictions of rule cohorts.
func (s *soak) drawQuotas(d draws) {
	if !d.chance(0.3) {
		return
	}
	most := s.config.Cluster.Devices()
	var texts []string
	for _, tenant := range []string{"", "t", "u"} {
		q := soakQuota{tenant: tenant, cohort: one(d, "", "c", "c"), nominal: map[string]int{"": d.IntN(most + 1)}, limit: one(d, -1, d.IntN(most+1)), weight: one(d, 1, 2, 0.5)}
		text := fmt.Sprintf("%s@%s=%d", tenant, q.cohort, q.nominal[""])
		if d.chance(0.3) {
			q.nominal["x"] = d.IntN(most + 1)
			text += fmt.Sprintf("&x~%d", q.nominal["x"])
		}
		if q.limit >= 0 {
			text += fmt.Sprintf("+%d", q.limit)
		}
		s.quotas, texts = append(s.quotas, q), append(texts, fmt.Sprintf("%s*%g", text, q.weight))
	}
	s.admission = fmt.Sprintf("cohorts:queues=%s:reclaim=%s:within=%s:borrow=%s:fair=%t", strings.Join(texts, "/"),
		one(d, "any", "any", "lower", "never"), one(d, "lower", "never"), one(d, "lower", "never"), d.chance(0.5))
}

// quota returns the quota of a tenant, the devices of its cohort by accelerator, and the resource
// that a job of it counts for.
func (s *soak) quota(j *spec.Job) (q soakQuota, cohort map[string]int, resource string) {
	for _, o := range s.quotas {
		if o.tenant == j.Tenant {
			q = o
		}
	}
	cohort = map[string]int{}
	for _, o := range s.quotas {
		if o.tenant == q.tenant || q.cohort != "" && o.cohort == q.cohort {
			for kind, n := range o.nominal {
				cohort[kind] += n
			}
		}
	}
	if _, has := cohort[j.Accelerator]; has {
		resource = j.Accelerator
	}
	return q, cohort, resource
}

// quotaFits reports whether the quota of an idle cohort is enough for j.
func (s *soak) quotaFits(j *spec.Job) bool {
	if s.quotas == nil {
		return true
	}
	q, cohort, r := s.quota(j)
	return j.Devices <= cohort[r] && (q.limit < 0 || j.Devices <= q.nominal[r]+q.limit)
}

// checkQuotas checks that the jobs in the system fit into the quotas of their tenants and cohorts.
func (s *soak) checkQuotas(admitted []*spec.Job) error {
	tenants, cohorts := map[[2]string]int{}, map[[2]string]int{}
	for _, j := range admitted {
		if s.quotas == nil {
			return nil
		}
		q, cohort, r := s.quota(j)
		name := "cohort " + q.cohort
		if q.cohort == "" {
			name = "tenant " + q.tenant
		}
		tenants[[2]string{q.tenant, r}] += j.Devices
		cohorts[[2]string{name, r}] += j.Devices
		if n := tenants[[2]string{q.tenant, r}]; q.limit >= 0 && n > q.nominal[r]+q.limit {
			return fmt.Errorf("tenant %q has %d devices of %q, and %d + %d at most", q.tenant, n, r, q.nominal[r], q.limit)
		}
		if n := cohorts[[2]string{name, r}]; n > cohort[r] {
			return fmt.Errorf("%s has %d devices of %q, %d at most", name, n, r, cohort[r])
		}
	}
	return nil
}
