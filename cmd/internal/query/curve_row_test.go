package query_test

import (
	"context"
	"math"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/planner"
)

func request(t *testing.T, devices, batch int) planner.Request {
	t.Helper()
	m, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	a, err := catalog.Accelerator("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	return planner.Request{Model: m, Accelerator: a, Devices: devices, GlobalBatch: batch}
}

// What the devices add makes the whole throughput, by throughput and by goodput.
func TestMarginsAddUp(t *testing.T) {
	r := request(t, 12, 48)
	free := r
	free.GlobalBatch, free.MinBatch, free.MaxBatch = 0, 16, 128
	free.Objective, free.NoiseScale = planner.Goodput, 100
	for _, r := range []planner.Request{r, free} {
		curve, err := planner.New(&analytic.Model{}, planner.Options{}).Curve(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		rows := query.CurveRows(curve)
		sum, from := 0.0, 0
		for _, row := range rows {
			if row.Marginal != 0 {
				sum += row.Marginal * float64(row.Devices-from)
				from = row.Devices
			}
		}
		last := rows[len(rows)-1]
		want := last.SamplesPerS
		if r.Objective == planner.Goodput {
			if want = last.GoodputPerS; want == last.SamplesPerS {
				t.Error("the last point has the least batch: goodput is not told from throughput")
			}
		}
		if math.Abs(sum-want) > 1e-9*want {
			t.Errorf("margins add up to %g samples/s, the curve ends at %g", sum, want)
		}
	}
}

// Every point of a surface is there, and those that are not new are as one with
// less of one thing.
func TestSurfaceRows(t *testing.T) {
	r := request(t, 6, 24)
	axes := planner.Axes{InterBps: []float64{1.25e9, 5e10}, HostBytes: []float64{64 << 30, 256 << 30}, CPUs: []int{1, 4}}
	s, err := planner.New(&analytic.Model{}, planner.Options{}).Surface(context.Background(), r, axes)
	if err != nil {
		t.Fatal(err)
	}
	rows, isNew := query.SurfaceRows(s, axes)
	type point struct {
		network, host float64
		cpus, devices int
	}
	at := map[point]query.CurveRow{}
	fresh := 0
	for i, row := range rows {
		p := point{row.NetworkGbps, row.HostGiB, row.CPUs, row.Devices}
		at[p] = row
		if isNew[i] {
			fresh++
			continue
		}
		less := []point{{p.network, p.host, p.cpus, p.devices - 1}, {p.network, p.host, 1, p.devices}, {p.network, 64, p.cpus, p.devices}, {10, p.host, p.cpus, p.devices}}
		same := false
		for _, q := range less {
			other, ok := at[q]
			same = same || q != p && ok && other.Plan == row.Plan && other.SamplesPerS == row.SamplesPerS
		}
		if !same {
			t.Errorf("%+v is not new, and none with less is the same", p)
		}
	}
	if len(at) != len(rows) || fresh == 0 || fresh == len(rows) {
		t.Errorf("%d rows of %d points, %d new", len(rows), len(at), fresh)
	}
	if most, few := at[point{400, 256, 4, 6}], at[point{10, 64, 1, 6}]; most.Accelerator != r.Accelerator.Name || most.SamplesPerS < few.SamplesPerS {
		t.Errorf("with most of everything %+v, with least %+v", most, few)
	}
}
