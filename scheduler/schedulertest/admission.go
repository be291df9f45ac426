package schedulertest

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// ConformAdmission runs the suite that every admission rule must pass. On random
// workloads with a policy made by make, every job ends. The rule does not change the
// snapshot, gives the same answer twice, gives a reason for every refusal, and admits
// the jobs of a line in order of arrival.
func ConformAdmission(t *testing.T, admission func() (scheduler.Admission, error), make Maker) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := admission()
		if err != nil {
			t.Fatal(err)
		}
		c := DrawCase(t)
		c.Admission = a
		checked := &checkedAdmission{t: t, Admission: a}
		if h, ok := a.(scheduler.Holder); ok {
			c.Admission = checkedHolder{checked, h}
		} else {
			c.Admission = checked
		}
		r := runWith(t, c, policyOf(t, make, c.World.Oracle(0.2, 7)), c.World.Truth(c.Cluster))
		for _, j := range r.Jobs {
			if !j.Finished {
				t.Fatalf("job %s on %d devices: %s%s", j.Job.ID, j.Job.Devices, j.Rejected, j.Unfinished)
			}
		}
		checked.checkLines(r)
	})
}

// checkedAdmission calls an admission rule twice and compares the answers.
type checkedAdmission struct {
	t tb
	scheduler.Admission
	admitted []spec.JobID // in order
}

func (d *checkedAdmission) Admit(ctx context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	before := clone(s)
	ok, why, err := d.Admission.Admit(ctx, s, j)
	if err != nil {
		return ok, why, err
	}
	if diff := difference(before, clone(s)); diff != "" {
		d.t.Fatalf("Admit changed the snapshot (-before +after):\n%s", diff)
	}
	if again, whyAgain, err := d.Admission.Admit(ctx, s, j); again != ok || whyAgain != why || err != nil {
		d.t.Fatalf("two calls of Admit for job %s at %v: %v %q, then %v %q, error %v", j.ID, s.Now, ok, why, again, whyAgain, err)
	}
	if ok != (why == "") {
		d.t.Fatalf("job %s at %v: admitted is %v, the reason for refusal is %q", j.ID, s.Now, ok, why)
	}
	if ok {
		d.admitted = append(d.admitted, j.ID)
	}
	return ok, why, nil
}

// checkLines checks that the jobs of each line were admitted in order of arrival.
func (d *checkedAdmission) checkLines(r *sim.Result) {
	h, ok := d.Admission.(scheduler.Holder)
	if !ok {
		return
	}
	last := map[string]int{} // index of the record admitted last, by line
	for _, id := range d.admitted {
		i := slices.IndexFunc(r.Jobs, func(j sim.JobRecord) bool { return j.Job.ID == id })
		line := h.Line(&r.Jobs[i].Job)
		if before, ok := last[line]; ok && before > i {
			d.t.Fatalf("line %q: job %s was admitted after %s", line, id, r.Jobs[before].Job.ID)
		}
		last[line] = i
	}
}

// checkedHolder is checkedAdmission for rules that hold jobs back.
type checkedHolder struct {
	*checkedAdmission
	scheduler.Holder
}

func (d checkedHolder) Admit(ctx context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	return d.checkedAdmission.Admit(ctx, s, j)
}
