package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// A decision is found again for a snapshot with the same time, jobs, grants and nodes only, and
// changes of what a caller got do not change what is kept.
func TestMemo(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4}}}
	grant := &scheduler.Grant{Job: "a", Shape: spec.NewShape(1), Slots: []scheduler.Slot{{Devices: 1}}}
	snapshot := func(now time.Duration, grants ...*scheduler.Grant) *scheduler.Snapshot {
		var jobs []*scheduler.JobState
		for i, g := range grants {
			jobs = append(jobs, &scheduler.JobState{Job: &spec.Job{ID: spec.JobID(rune('a' + i)), Devices: 1}, Grant: g})
		}
		return scheduler.NewSnapshot(now, c, jobs)
	}
	var m policy.Memo
	if _, ok := m.Of(snapshot(0)); ok {
		t.Error("a decision before the first")
	}
	d := m.Keep(snapshot(time.Minute, grant, nil), scheduler.Decision{Grants: []*scheduler.Grant{grant}, Why: map[spec.JobID]string{"a": "first"}, Wake: time.Hour})
	for range 2 { // changes of one caller do not reach the next
		d.Grants[0], d.Why["a"] = nil, "changed"
		var ok bool
		if d, ok = m.Of(snapshot(time.Minute, grant, nil)); !ok || !slices.Equal(d.Grants, []*scheduler.Grant{grant}) || d.Why["a"] != "first" || d.Wake != time.Hour {
			t.Errorf("%+v %v", d, ok)
		}
	}
	other := *grant
	failed := snapshot(time.Minute, grant, nil)
	failed.Down = []int{1}
	for name, s := range map[string]*scheduler.Snapshot{
		"later":          snapshot(time.Minute+1, grant, nil),
		"without grants": snapshot(time.Minute, nil, nil),
		"other grant":    snapshot(time.Minute, &other, nil),
		"fewer jobs":     snapshot(time.Minute, grant),
		"more jobs":      snapshot(time.Minute, grant, nil, nil),
		"node down":      failed,
	} {
		if _, ok := m.Of(s); ok {
			t.Errorf("%s: the decision for another snapshot", name)
		}
	}
}
