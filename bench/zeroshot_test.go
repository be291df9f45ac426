package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// published yields the rows of data/published that can be read.
func published(t testing.TB) []spec.Measurement {
	t.Helper()
	imp, err := datasets.Lookup("published")
	if err != nil {
		t.Fatal(err)
	}
	var out []spec.Measurement
	for m, err := range imp.Import(context.Background(), os.DirFS(filepath.Join(spectest.Shared(t), "data", "published"))) {
		if err == nil {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		t.Fatal("data/published holds no readable row")
	}
	return out
}

// timed are the sources whose step times the analytic model is scored on: those
// that train large transformers with a recorded plan.
var timed = []string{"bigscience", "internevo", "megatron_bridge", "torchtitan", "megatron_sc21", "korthikanti_2205_05198", "fms_fsdp", "nemo_2407"}

// errorsOf collects the errors of one source.
type errorsOf struct {
	ape, signed      []float64 // |predicted/measured - 1|, log(predicted/measured)
	covered, refused int
}

func (e *errorsOf) row(name string) string {
	slices.Sort(e.ape)
	slices.Sort(e.signed)
	n := len(e.ape)
	if n == 0 {
		return fmt.Sprintf("%-24s %5d %7d", name, 0, e.refused)
	}
	return fmt.Sprintf("%-24s %5d %7d %8.1f %% %8.1f %% %+8.1f %% %8.1f %%", name, n, e.refused,
		100*e.ape[n/2], 100*e.ape[n*9/10], 100*math.Expm1(e.signed[n/2]), 100*float64(e.covered)/float64(n))
}

// TestZeroShot predicts the published step times from datasheets alone. The
// model's constants are one table for all sources, but were chosen with these
// rows in view: this is not a left-out error.
func TestZeroShot(t *testing.T) {
	by := map[string]*errorsOf{}
	var pooled errorsOf
	model := &family.Analytic{}
	for _, m := range published(t) {
		name := strings.TrimPrefix(m.Source, "published/")
		sec := m.MedianStepSec()
		if !slices.Contains(timed, name) || m.Outcome != spec.OK || sec == 0 || m.Env[spec.EnvWrongConfig] != "" || strings.Contains(m.Doubt, "suspect") {
			continue
		}
		if by[name] == nil {
			by[name] = &errorsOf{}
		}
		p, err := model.Predict(context.Background(), m.Config)
		if err != nil {
			by[name].refused++
			continue
		}
		got, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
		if os.Getenv("PACER_VERBOSE") == name {
			t.Logf("%s %s %s: measured %.2f s, predicted %.2f s", m.Origin, m.Config.Model.Name, m.Config.Plan, sec, got)
		}
		for _, e := range []*errorsOf{by[name], &pooled} {
			e.ape = append(e.ape, math.Abs(got/sec-1))
			e.signed = append(e.signed, math.Log(got/sec))
			if lo <= sec && sec <= hi {
				e.covered++
			}
		}
	}
	t.Logf("%-24s %5s %7s %10s %10s %10s %10s", "source", "rows", "refused", "median", "p90", "signed", "covered")
	for _, name := range timed {
		if by[name] == nil {
			t.Errorf("no row of %s", name)
			continue
		}
		pooled.refused += by[name].refused
		t.Log(by[name].row(name))
	}
	t.Log(pooled.row("pooled"))
	n := len(pooled.ape)
	if med := pooled.ape[n/2]; med > 0.15 {
		t.Errorf("pooled median error %.3f, want at most 0.15", med)
	}
	if c := float64(pooled.covered) / float64(n); c < 0.85 {
		t.Errorf("the 90 %% interval covers %.3f of the rows, want at least 0.85", c)
	}
	if n < 500 {
		t.Errorf("%d rows predicted, want at least 500", n)
	}
}
