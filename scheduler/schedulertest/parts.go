package schedulertest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// ConformAdmission runs what every admission rule must pass: on any workload, with
// a policy made by make, every job that could run ends, the rule leaves the
// snapshot alone, answers twice the same, says why it turns somebody away, and
// lets nobody be overtaken by who stands behind in the same line.
func ConformAdmission(t *testing.T, admission func() (scheduler.Admission, error), make Maker) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := admission()
		if err != nil {
			t.Fatal(err)
		}
		c := DrawCase(t)
		c.Admission = a
		asked := &doubted{t: t, Admission: a}
		if h, ok := a.(scheduler.Holder); ok {
			c.Admission = doubtedHolder{asked, h}
		} else {
			c.Admission = asked
		}
		r := runWith(t, c, policyOf(t, make, c.World.Oracle(0.2, 7)), c.World.Truth(c.Cluster))
		for _, j := range r.Jobs {
			if !j.Finished {
				t.Fatalf("job %s on %d devices: %s%s", j.Job.ID, j.Job.Devices, j.Rejected, j.Unfinished)
			}
		}
		asked.checkLines(r)
	})
}

// doubted asks an admission rule twice and compares.
type doubted struct {
	t tb
	scheduler.Admission
	in []spec.JobID // who was let in, in order
}

func (d *doubted) Admit(ctx context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	before := clone(s)
	ok, why, err := d.Admission.Admit(ctx, s, j)
	if err != nil {
		return ok, why, err
	}
	if diff := cmp.Diff(before, clone(s)); diff != "" {
		d.t.Fatalf("Admit changed the snapshot (-before +after):\n%s", diff)
	}
	if again, whyAgain, err := d.Admission.Admit(ctx, s, j); again != ok || whyAgain != why || err != nil {
		d.t.Fatalf("asked twice about job %s at %v: %v %q, then %v %q, error %v", j.ID, s.Now, ok, why, again, whyAgain, err)
	}
	if ok != (why == "") {
		d.t.Fatalf("job %s at %v: let in is %v, the reason against it is %q", j.ID, s.Now, ok, why)
	}
	if ok {
		d.in = append(d.in, j.ID)
	}
	return ok, why, nil
}

// checkLines checks that within each line jobs came in as they arrived.
func (d *doubted) checkLines(r *sim.Result) {
	h, ok := d.Admission.(scheduler.Holder)
	if !ok {
		return
	}
	last := map[string]int{} // record let in last, by line
	for _, id := range d.in {
		i := slices.IndexFunc(r.Jobs, func(j sim.JobRecord) bool { return j.Job.ID == id })
		line := h.Line(&r.Jobs[i].Job)
		if before, ok := last[line]; ok && before > i {
			d.t.Fatalf("line %q: job %s came in after %s", line, id, r.Jobs[before].Job.ID)
		}
		last[line] = i
	}
}

// doubtedHolder is doubted for rules that hold jobs back.
type doubtedHolder struct {
	*doubted
	scheduler.Holder
}

func (d doubtedHolder) Admit(ctx context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	return d.doubted.Admit(ctx, s, j)
}
