package server

import (
	"errors"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/scheduler"
)

var _ scheduler.Oracle = (*remote.Client)(nil)

// sameErrors compares warnings by their text.
var sameErrors = cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })

// alike reports whether errors have the same text and wrap the same sentinels.
func alike(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	for _, is := range []error{planner.ErrInfeasible, perfmodel.ErrNotCovered, perfmodel.ErrTooFewPoints} {
		if errors.Is(a, is) != errors.Is(b, is) {
			return false
		}
	}
	var x, y *planner.InfeasibleError
	if errors.As(a, &x) != errors.As(b, &y) || x != nil && !cmp.Equal(x, y, sameErrors) {
		return false
	}
	return a.Error() == b.Error()
}

// A client has the same answers and errors as a planner in the same process.
func TestRemoteIsLocal(t *testing.T) {
	s := newServer(t, Options{MaxSearches: 8})
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	client, err := remote.New(web.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := query.Analytic()
	if err != nil {
		t.Fatal(err)
	}
	compareOracles(t, client, planner.New(p, planner.Options{}), 40)
}

// compareOracles compares n random requests of each kind.
func compareOracles(t *testing.T, got, want scheduler.Oracle, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	failed, answered := 0, 0
	check := func(i int, what string, req any, g any, gerr error, w any, werr error) {
		t.Helper()
		if werr != nil {
			failed++
		} else {
			answered++
		}
		if !alike(werr, gerr) {
			t.Errorf("%d: %s of %+v: error %v, locally %v", i, what, req, gerr, werr)
		}
		if werr != nil {
			return
		}
		if d := cmp.Diff(w, g, sameErrors, cmpopts.IgnoreUnexported(planner.Request{})); d != "" {
			t.Errorf("%d: %s of %+v (-local +remote)\n%s", i, what, req, d)
		}
	}
	ctx := t.Context()
	for i := range n {
		req := randomRequest(r)
		g, gerr := got.Best(ctx, req)
		w, werr := want.Best(ctx, req)
		check(i, "best", req, g, gerr, w, werr)
		req.Top = 5
		gr, gerr := got.Rank(ctx, req)
		wr, werr := want.Rank(ctx, req)
		check(i, "rank", req, gr, gerr, wr, werr)
		req.Top, req.Devices = 0, min(req.Devices, 16)
		gc, gerr := got.Curve(ctx, req)
		wc, werr := want.Curve(ctx, req)
		check(i, "curve", req, gc, gerr, wc, werr)
		c := w.Config
		if werr != nil || c.Model.Name == "" {
			c = spec.Config{Model: req.Model, Accelerator: spec.Accelerator{Name: "nobody knows"}, Plan: spec.Plan{DP: 1}, Shape: spec.Packed(1, 8)}
		}
		gp, gerr := got.Predict(ctx, c)
		wp, werr := want.Predict(ctx, c)
		check(i, "predict", c, gp, gerr, wp, werr)
	}
	if failed == 0 || answered < n {
		t.Errorf("%d requests with an answer, %d without: too few to compare", answered, failed)
	}
}

func randomRequest(r *rand.Rand) planner.Request {
	models, parts := catalog.Models(), catalog.Accelerators()
	a := parts[r.IntN(len(parts))].Accelerator
	node := query.NodeOf(a)
	req := planner.Request{
		Model: models[r.IntN(len(models))].Model, Accelerator: a, Link: node.Link, PerNode: node.Devices,
		NodeHostBytes: node.HostBytes, Devices: 1 << r.IntN(5), GlobalBatch: 1 << r.IntN(6),
	}
	if r.IntN(3) == 0 {
		req.Framework = "DeepSpeed"
	}
	if r.IntN(4) == 0 {
		req.Plan = &spec.Plan{DP: req.Devices, AccumSteps: req.GlobalBatch / min(req.Devices, req.GlobalBatch), ZeRO: r.IntN(4)}
		req.GlobalBatch = req.Plan.GlobalBatch()
	}
	return req
}
