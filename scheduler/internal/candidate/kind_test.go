package candidate

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// TestKinds: a finder that has answered for jobs with other requests of CPUs and memory has the candidates of one that has
// not.
func TestKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := spec.NodeGroup{Count: 2, Devices: 4, CPUs: 16, HostBytes: 64 << 30,
			Accelerator: spec.Accelerator{Name: "x", MemBytes: 50}, Link: spec.Link{IntraBps: 1e11, InterBps: 1e10, HostBps: 1e10}}
		other := group
		other.CPUs, other.Accelerator.Name = rapid.SampledFrom([]int{0, 8}).Draw(t, "CPUs of the other group"), "y"
		c := spec.Cluster{Groups: []spec.NodeGroup{group, other}}
		cpus := rapid.Bool().Draw(t, "curves over CPUs")
		newFinder := func() *Finder {
			f := NewFinder(policy.Deps{Oracle: planner.New(hostBound{}, planner.Options{})})
			f.Cpus = cpus
			return f
		}
		known := newFinder()
		for range rapid.IntRange(1, 4).Draw(t, "jobs") {
			j := &spec.Job{ID: "a", Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 4, SeqLen: 8, Vocab: 100}, GlobalBatch: 8, Devices: 2,
				Host: spec.Host{MilliCPUs: 500 * rapid.Int64Range(0, 12).Draw(t, "half CPUs"), Bytes: rapid.Int64Range(0, 24).Draw(t, "GiB") << 30}}
			fresh := newFinder()
			got, err := known.Curve(t.Context(), c, j)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fresh.Curve(t.Context(), c, j)
			if err != nil || !reflect.DeepEqual(got.Configs, want.Configs) {
				t.Fatalf("%v: curve %+v, want %+v, %v", j.Host, got.Configs, want.Configs, err)
			}
			set, err := known.AsSubmitted(t.Context(), c, j)
			if err != nil {
				t.Fatal(err)
			}
			if wanted, err := fresh.AsSubmitted(t.Context(), c, j); err != nil || !reflect.DeepEqual(set, wanted) {
				t.Fatalf("%v: as submitted %+v, want %+v, %v", j.Host, set, wanted, err)
			}
		}
	})
}

// TestSharedCurve: jobs that need no more of a host than the share of their devices share a curve.
func TestSharedCurve(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16, HostBytes: 64 << 30, Accelerator: spec.Accelerator{Name: "x", MemBytes: 200}}}}
	f := NewFinder(policy.Deps{Oracle: planner.New(hostBound{}, planner.Options{})})
	curve := func(milliCPUs, gib int64) *Curve {
		cv, err := f.Curve(t.Context(), c, &spec.Job{Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 4, SeqLen: 8, Vocab: 100},
			GlobalBatch: 8, Devices: 2, Host: spec.Host{MilliCPUs: milliCPUs, Bytes: gib << 30}})
		if err != nil || len(cv.Configs) == 0 {
			t.Fatalf("%+v, %v", cv, err)
		}
		return cv
	}
	shared := curve(0, 0)
	if curve(1500, 3) != shared || curve(4000, 16) != shared {
		t.Error("jobs within the share of their devices have several curves")
	}
	if curve(4001, 16) == shared || curve(4000, 17) == shared {
		t.Error("jobs beyond the share of their devices have the curve of those within it")
	}
}
