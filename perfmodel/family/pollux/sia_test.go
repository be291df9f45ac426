package pollux

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// onType moves rows to another type of accelerator that is speed times as fast.
func onType(rows []spec.Measurement, name string, speed float64) []spec.Measurement {
	rows = slices.Clone(rows)
	for i := range rows {
		m := &rows[i]
		m.Config.Accelerator.Name = name
		m.StepSec = []float64{m.StepSec[0] / speed}
		m.PhaseSec = map[string]float64{"sync": m.PhaseSec["sync"] / speed}
	}
	return rows
}

// TestFitSiaProjects: a type with one measured device has the same speed ratio at any scale as that device.
func TestFitSiaProjects(t *testing.T) {
	base := measuredGrid(&truth, []int{4, 16, 64}, []int{1}, perftest.DataParallelShapes...)
	profile := onType(measuredGrid(&truth, []int{4, 16, 64}, []int{1}, []int{1}), "fast", 3)
	fitted, err := FitSia(t.Context(), append(base, profile...))
	if err != nil {
		t.Fatal(err)
	}
	own, _ := perftest.Fit(t, SiaFamily, base)
	for _, m := range measuredGrid(&truth, []int{8}, []int{1, 2}, []int{1}, []int{4}, []int{4, 4}) {
		want, err1 := own.Predict(t.Context(), m.Config)
		same, err2 := fitted.Predict(t.Context(), m.Config)
		m.Config.Accelerator.Name = "fast"
		got, err3 := fitted.Predict(t.Context(), m.Config)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if same.Throughput != want.Throughput || math.Abs(got.Throughput/want.Throughput-3) > 1e-3 {
			t.Errorf("%s: %g samples/s, %g on fast, want %g and thrice that", m.Config.Plan, same.Throughput, got.Throughput, want.Throughput)
		}
		if several := m.Config.Plan.DP > 1; several != strings.Contains(fmt.Sprint(got.Warnings), "several fast are assumed to scale like toychip") || got.By != "sia: toy on fast from toychip" {
			t.Errorf("%s: %+v", m.Config.Plan, got)
		}
	}
}

// TestFitSiaPacksAsItsBase: a projected job is assumed on as few nodes of the base type as it needs, regardless
// of its own nodes.
func TestFitSiaPacksAsItsBase(t *testing.T) {
	base := measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...) // nodes of 4
	profile := onType(measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}), "fast", 1)
	fitted, err := FitSia(t.Context(), append(base, profile...))
	if err != nil {
		t.Fatal(err)
	}
	two, one := perftest.DataParallel(8, 1, 4, 4), perftest.DataParallel(8, 1, 8)
	one.Accelerator.Name = "fast"
	want, err1 := fitted.Predict(t.Context(), two)
	got, err2 := fitted.Predict(t.Context(), one)
	if err := errors.Join(err1, err2); err != nil || math.Abs(got.Throughput/want.Throughput-1) > 1e-9 {
		t.Errorf("8 on one node: %g samples/s, want the %g of 4+4, %v", got.Throughput, want.Throughput, err)
	}
}

// TestFitSiaOrder: the type to project from is the first one in order.
func TestFitSiaOrder(t *testing.T) {
	grid := measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...)
	rows := slices.Concat(grid, onType(grid, "other", 2), onType(measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}), "fast", 3))
	c := perftest.DataParallel(8, 1, 4)
	c.Accelerator.Name = "fast"
	for _, x := range []struct {
		order []string
		from  string
	}{{nil, "other"}, {[]string{"toychip"}, "toychip"}, {[]string{"absent", "fast", "toychip", "other"}, "toychip"}, {[]string{"other", "toychip"}, "other"}} {
		fitted, err := FitSia(t.Context(), rows, x.order...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := fitted.Predict(t.Context(), c)
		if err != nil || p.By != "sia: toy on fast from "+x.from {
			t.Errorf("order %v: %+v, %v, want from %s", x.order, p, err, x.from)
		}
	}
}

func TestFitSiaWithoutScaling(t *testing.T) {
	one := measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1})
	fitted, err := FitSia(t.Context(), append(one, onType(one, "fast", 3)...))
	if err != nil {
		t.Fatal(err)
	}
	c := perftest.DataParallel(8, 1, 4)
	c.Accelerator.Name = "fast"
	p, err := fitted.Predict(t.Context(), c)
	if err != nil || p.By != "sia: toy on fast" {
		t.Errorf("%+v, %v, want a model of its own", p, err)
	}
	alone := c
	alone.Plan.DP, alone.Shape = 1, spec.NewShape(1)
	q, err := fitted.Predict(t.Context(), alone)
	if err != nil || math.Abs(p.Throughput/q.Throughput-4) > 1e-3 {
		t.Errorf("4 devices at %g samples/s, 1 at %g, %v: want perfect scaling", p.Throughput, q.Throughput, err)
	}
}

func TestFitSiaErrors(t *testing.T) {
	grid := measuredGrid(&truth, []int{4, 16}, []int{1}, []int{2}, []int{4})
	one := onType(measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}), "fast", 3)
	other := slices.Clone(one)
	other[0].Config.Model.Name = "other"
	long := slices.Clone(one)
	for i := range long {
		long[i].Config.SeqLen = 512
	}
	all := measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...)
	for _, c := range []struct {
		name string
		rows []spec.Measurement
		few  bool
		want string
	}{
		{"nothing", nil, true, "no usable row"},
		{"two models", other, false, "want one model"},
		{"no row of one device", append(grid, one...), true, "ratio is not identifiable"},
		{"other samples", append(all, long...), false, "want one job on all types"},
	} {
		_, err := FitSia(t.Context(), c.rows)
		if err == nil || errors.Is(err, perfmodel.ErrTooFewPoints) != c.few || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSiaNotCovered(t *testing.T) {
	base := measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...)
	profile := onType(measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}), "fast", 3)
	fitted, err := FitSia(t.Context(), append(base, profile...))
	if err != nil {
		t.Fatal(err)
	}
	for _, accelerator := range []string{"toychip", "fast"} {
		for want, change := range perftest.NotDataParallel {
			c := perftest.DataParallel(8, 1, 4)
			c.Accelerator.Name = accelerator
			change(&c)
			if _, err := fitted.Predict(t.Context(), c); !errors.Is(err, perfmodel.ErrNotCovered) {
				t.Errorf("%s, %s: %v", accelerator, want, err)
			}
		}
	}
}

func TestSiaLoad(t *testing.T) {
	base := measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...)
	profile := onType(measuredGrid(&truth, []int{4, 16}, []int{1}, []int{1}), "fast", 3)
	fitted, err := FitSia(t.Context(), append(base, profile...))
	if err != nil {
		t.Fatal(err)
	}
	b, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loadSia(b)
	if err != nil {
		t.Fatal(err)
	}
	c := perftest.DataParallel(8, 2, 4, 4)
	c.Accelerator.Name = "fast"
	want, err1 := fitted.Predict(t.Context(), c)
	got, err2 := loaded.Predict(t.Context(), c)
	if err1 != nil || err2 != nil || got.Throughput != want.Throughput {
		t.Errorf("%+v, %v came back as %+v, %v", want, err1, got, err2)
	}
	for _, x := range []struct{ in, want string }{
		{"", "reading a fitted model"},
		{"{}", "has no type"},
		{`{"types":[null]}`, "null"},
		{`{"types":[{}]}`, "alpha_c is 0"},
		{strings.Replace(string(b), `"from":"toychip"`, `"from":"gone"`, 1), `from "gone"`},
		{strings.Replace(string(b), `"per_node":4`, `"per_node":0`, 1), "0 per node"},
		{strings.Replace(string(b), `"recompute":"none"`, `"recompute":"full"`, 1), "want one job on all types"},
	} {
		if _, err := loadSia([]byte(x.in)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", x.in, err, x.want)
		}
	}
}
