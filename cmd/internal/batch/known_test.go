package batch

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestRowsUnlike: rows that describe a model and rows that only name it are not one model.
func TestRowsUnlike(t *testing.T) {
	row := func(name string, layers int) spec.Measurement {
		m := spec.Measurement{Config: spec.Config{Model: spec.Model{Name: name}, Accelerator: spec.Accelerator{Name: "H100-80GB-SXM", MemBps: 3e12}}}
		if layers > 0 {
			m.Config.Model.Kind, m.Config.Model.Layers, m.Config.Model.Hidden = spec.Decoder, layers, 64
		}
		return m
	}
	seen := calibratedTo([]spec.Measurement{row("named", 0), row("shaped", 4)})
	for _, c := range []struct {
		of     spec.Measurement
		refuse bool
	}{{row("named", 0), false}, {row("named", 4), true}, {row("shaped", 4), false}, {row("shaped", 0), true}, {row("other", 4), false}} {
		what, refuse := seen.unknown(&c.of.Config)
		if refuse != c.refuse || refuse && !strings.Contains(what, "give the same in all of them") {
			t.Errorf("%+v: %q, refused %v, want %v", c.of.Config.Model, what, refuse, c.refuse)
		}
	}
	of := row("named", 0).Config
	if what := strange(&of); !strings.Contains(what, `unknown model "named"`) {
		t.Errorf("strange: %q", what)
	}
}

// TestCalibrationRows: of rows that describe a model and rows that only name it, the former are used. Each row is
// reported at most once, and stacks are compared by their names.
func TestCalibrationRows(t *testing.T) {
	const head = "row_id,model,params_b,accelerator,num_gpus,micro_batch,seq_len,framework,step_time_s\n"
	for _, tc := range []struct {
		rows, predict string
		log           []string
		failed        bool
	}{
		{"a,own,,h100,8,4,,FSDP,2\nb,own,7,h100,8,4,2048,FSDP,2\nc,alone,,h100,8,4,,FSDP,2\n", "p,own,7,h100,8,4,2048,FSDP@2024,\n", []string{
			`not calibrated on: seen.csv:2: a: some rows of model "own" give`,
			`used for calibration, known by name only: seen.csv:4: c: unknown model "alone"`,
			`predict: calibrating to 2 of 3 rows of seen.csv`,
		}, true},
		{"b,own,7,h100,8,4,2048,FSDP,2\n", "p,own,7,h100,8,4,2048,DeepSpeed@0.16,\n", []string{
			`predict: calibrating to 1 of 1 rows of seen.csv`,
			`predict: rows of 'DeepSpeed', calibrated on 'FSDP': taken as`,
		}, false},
	} {
		var log bytes.Buffer
		run, err := New(t.Context(), Options{Family: "hybrid", Calibrate: "seen.csv", Log: &log, Open: func(path string) (io.ReadCloser, string, error) {
			return io.NopCloser(strings.NewReader(head + tc.rows)), path, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := run.Predict(strings.NewReader(head+tc.predict), "rows.csv", func(*Row) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
		run.Finish()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if d := cmp.Diff(tc.log, lines, cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if err := run.Verdict("rows.csv"); (err != nil) != tc.failed || err != nil && fail.Code(err) != fail.Partial {
			t.Errorf("verdict %v", err)
		}
	}
}
