package batch

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestOtherStacks: a training stack is another one if its name is, whatever its release.
func TestOtherStacks(t *testing.T) {
	for _, c := range []struct {
		rows, calibration string
		other             bool
	}{
		{"DeepSpeed@..2024-07", "DeepSpeed@..2024-08", false}, {"DeepSpeed@0.16 launch=eager", "DeepSpeed", false}, {"@..2023", "", false},
		{"Megatron-LM@2025", "Megatron Core", false}, {"FSDP", "DeepSpeed", true}, {"", "FSDP", true}, {"ours", "ours@..2024", false}, {"ours", "theirs", true},
	} {
		k := calibratedTo([]spec.Measurement{{Config: spec.Config{Framework: c.calibration}}})
		if note := k.otherStacks(map[string]bool{stackOf(&spec.Config{Framework: c.rows}): true}); (note != "") != c.other {
			t.Errorf("rows of %q, calibrated on %q: note %q", c.rows, c.calibration, note)
		}
	}
}

// TestDrift: calibration to rows of a network that has become slower says so once on standard error, and in the warnings
// of rows of that site only.
func TestDrift(t *testing.T) {
	const head = "row_id,model,accelerator,framework,num_gpus,tp,dp,micro_batch,grad_accum,measured_at,step_time_s\n"
	line := func(i int, accelerator, at, sec string) string {
		tp, dp := 1<<(i%4), 4<<(i%3)
		return fmt.Sprintf("%d,Llama2-7B,%s,Megatron Core,%d,%d,%d,%d,2,%s,%s\n", i, accelerator, tp*dp, tp, dp, 1+i%2, at, sec)
	}
	fam, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	rows := head
	for i := range 31 {
		rows += line(i, "A100-80GB-SXM", "", "")
	}
	seen := head
	for row, err := range datasets.PublishedRows(t.Context(), "rows.csv", strings.NewReader(rows), nil, false) {
		if err != nil {
			t.Fatal(err)
		}
		c := row.Measurement.Config
		p, err := fam.Unfitted.Predict(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := analytic.Shipped().Physics.Explain(&c)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
		i, _ := strconv.Atoi(row.ID)
		if i >= 16 {
			sec *= 1 + (parts.TP+parts.DP)/parts.Total()
		}
		seen += line(i, "A100-80GB-SXM", fmt.Sprintf("2026-05-%02d", 1+i), fmt.Sprint(sec))
	}
	var log strings.Builder
	run, err := New(t.Context(), Options{Family: "hybrid", Calibrate: "seen.csv", Log: &log,
		Open: func(path string) (io.ReadCloser, string, error) {
			return io.NopCloser(strings.NewReader(seen)), path, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	warned := ""
	err = run.Predict(strings.NewReader(head+line(1, "A100-80GB-SXM", "", "")+line(2, "H100-80GB-SXM", "", "")), "rows.csv", func(r *Row) error {
		warned += r.ID + ":" + strings.Join(r.Warnings, ";") + "\n"
		return nil
	})
	run.Finish()
	const want = "drift: since 2026-05-17 the network time of Megatron Core on A100-80GB-SXM is "
	if err != nil || strings.Count(log.String(), "predict: "+want) != 1 {
		t.Errorf("standard error, %v:\n%s\nwant %q", err, log.String(), want)
	}
	if first, second, _ := strings.Cut(warned, "\n"); !strings.Contains(first, want) || strings.Contains(second, "drift") {
		t.Errorf("warnings %q, want %q of the first row only", warned, want)
	}
}

// BenchmarkPredictRows is the path from rows that are read to predictions, on
// one core.
func BenchmarkPredictRows(b *testing.B) {
	const n = 1 << 16
	var rows []answer
	for row, err := range datasets.PublishedRows(b.Context(), "rows.csv", strings.NewReader(spectest.DistinctRows(n)), nil, false) {
		if err != nil {
			b.Fatal(err)
		}
		rows = append(rows, answer{row: row})
	}
	fam, err := family.Lookup("hybrid")
	if err != nil {
		b.Fatal(err)
	}
	run := &Run{ctx: b.Context(), p: fam.Unfitted, memory: memory.Shipped()}
	b.ReportAllocs()
	for b.Loop() {
		run.answerPart(rows)
	}
	for i := range rows {
		if rows[i].err != nil {
			b.Fatal(rows[i].err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "predictions/s")
}
