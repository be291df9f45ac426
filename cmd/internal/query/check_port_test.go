package query

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// unmeasured is a Resolver without measurements and fitted models.
func unmeasured(t *testing.T) *Resolver {
	none, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Resolver{Fitted: none, Read: func(func(reader.Store) error) error { return nil }}
}

// Where no plan fits on the devices of the file, a port takes the first doubling of them that holds one.
func TestPortTakesMoreDevices(t *testing.T) {
	const file = `{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}`
	r := unmeasured(t)
	for _, tc := range []struct {
		model   string
		devices int
		want    int // devices of the port, 0 = nothing fits
	}{
		{"llama3-8b", 8, 8}, {"llama3-8b", 1, 4}, {"llama3-8b", 2, 4}, {"llama3-70b", 4, 32}, {"llama3-70b", 3, 24}, {"llama3-405b", 8, 128}, {"llama3-405b", 1, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d", tc.model, tc.devices), func(t *testing.T) {
			q := CheckRequest{Request: Request{Model: tc.model, Accelerator: "b300", Seq: 2048, Framework: "deepspeed"}, File: "ds.json", Text: []byte(file), Devices: tc.devices, To: "v100"}
			out, err := r.CheckFile(t.Context(), q)
			if tc.want == 0 {
				if !errors.Is(err, planner.ErrInfeasible) {
					t.Errorf("error %v, want that nothing fits", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if out.Port.Best.Devices != tc.want {
				t.Errorf("the best plan has %d devices, want %d", out.Port.Best.Devices, tc.want)
			}
			if held := out.Port.Held; (held != nil) != (out.Port.Diff != "") || held != nil && held.StepTimeSec < out.Port.Best.StepTimeSec {
				t.Errorf("the plan of the diff is %+v, the best %+v", held, out.Port.Best)
			}
			note := fmt.Sprintf("no plan fits on %d devices; %d hold one", tc.devices, tc.want)
			if slices.Contains(out.Port.Notes, note) != (tc.want > tc.devices) {
				t.Errorf("notes %q, want %q where the devices do not suffice", out.Port.Notes, note)
			}
			at := q.Request
			at.Accelerator = q.To
			found, err := r.Resolve(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			found.GlobalBatch, found.Precision = 4*tc.devices, spec.FP16
			for n := tc.devices; n <= tc.want; n += n {
				found.Devices = n
				best, err := planner.New(found.Predictor, planner.Options{}).Best(t.Context(), found.Request)
				if holds := err == nil; holds != (n == tc.want) || holds && best.Config.Plan.String() != out.Port.Best.Plan {
					t.Errorf("%d devices: plan %s, %v; the port has %s on %d", n, best.Config.Plan, err, out.Port.Best.Plan, tc.want)
				}
			}
		})
	}
}

// A port says which groups leave the node, and whether the links of a rack join them.
func TestPortSpans(t *testing.T) {
	h100, gb200 := spec.Accelerator{Name: "H100-80GB-SXM"}, spec.Accelerator{Name: "GB200"}
	for _, tc := range []struct {
		tp, ep       int
		on           spec.Accelerator
		perNode, was int
		want         []string
	}{
		{8, 1, h100, 8, 8, nil},
		{8, 1, gb200, 4, 8, []string{"a node of GB200 has 4 devices: tp=8 of the file spans 2 nodes of the 72 devices that its links join"}},
		{1, 8, gb200, 4, 8, []string{"a node of GB200 has 4 devices: ep=8 of the file spans 2 nodes of the 72 devices that its links join"}},
		{16, 64, h100, 8, 72, []string{"a node of H100-80GB-SXM has 8 devices: tp=16 of the file spans 2 nodes", "a node of H100-80GB-SXM has 8 devices: ep=64 of the file spans 8 nodes"}},
		{1, 64, h100, 8, 8, nil}, // it spanned nodes before
		{1, 72, h100, 8, 72, []string{"a node of H100-80GB-SXM has 8 devices: ep=72 of the file spans 9 nodes"}},
		{96, 1, gb200, 4, 8, []string{"a node of GB200 has 4 devices: tp=96 of the file spans 24 nodes"}},
	} {
		if got := spans(&spec.Plan{TP: tc.tp, EP: tc.ep}, tc.on, tc.perNode, tc.was); !slices.Equal(got, tc.want) {
			t.Errorf("tp=%d, ep=%d on %s: %q, want %q", tc.tp, tc.ep, tc.on.Name, got, tc.want)
		}
	}
}
