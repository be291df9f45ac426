package worker

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func goodRequest() Request {
	return Request{
		Config: spec.Config{Model: spec.Model{Name: "m", Kind: spec.Decoder}, Plan: spec.Plan{DP: 2, MicroBatch: 4}},
		Device: CPU, Devices: 2, Seed: math.MaxUint64, Threads: 1,
		MinSteps: 5, MaxSteps: 100, MaxTime: 30, Interval: 0.02, Timeout: 300,
	}
}

func TestRequestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "request.json")
	want := goodRequest()
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	text := spectest.ReadFile(t, file)
	var got Request
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want.Version = Version
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRequestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"device":     {func(r *Request) { r.Device = "tpu" }, `"tpu"`},
		"devices":    {func(r *Request) { r.Devices = 3 }, "3 devices"},
		"threads":    {func(r *Request) { r.Threads = -1 }, "threads=-1"},
		"no steps":   {func(r *Request) { r.MinSteps = 0 }, "min_steps=0"},
		"few steps":  {func(r *Request) { r.MaxSteps = 4 }, "max_steps=4"},
		"least time": {func(r *Request) { r.MinTime = 31 }, "min_time_s=31"},
		"no least":   {func(r *Request) { r.MinTime = math.NaN() }, "min_time_s=NaN"},
		"time":       {func(r *Request) { r.MaxTime = 0 }, "max_time_s=0"},
		"endless":    {func(r *Request) { r.MaxTime = math.Inf(1) }, "max_time_s=+Inf"},
		"no number":  {func(r *Request) { r.Interval = math.NaN() }, "interval=NaN"},
		"no timeout": {func(r *Request) { r.Timeout = -1 }, "timeout_s=-1"},
	} {
		r := goodRequest()
		c.change(&r)
		if err := r.Write(filepath.Join(t.TempDir(), "r")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
