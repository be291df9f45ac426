package calibrate

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

func openFile(path string) (io.ReadCloser, string, error) {
	f, err := os.Open(path)
	return f, filepath.Base(path), err
}

// emitTo writes four plans of a model for a framework.
func emitTo(t *testing.T, model, framework, rows string) (*Suggested, error) {
	t.Helper()
	o := Options{Model: model, Accelerator: "h100", Devices: 16, Seed: 1, Emit: framework, Points: 4, Rows: rows}
	return emit(t.Context(), o, &datadir.Dir{Given: t.TempDir(), Log: io.Discard}, io.Discard)
}

// TestEmit: every framework gets four different plans that it can start, and rows that are read back as these plans.
func TestEmit(t *testing.T) {
	for _, f := range launch.Frameworks() {
		dir := t.TempDir()
		s, err := emitTo(t, "llama3-8b", f.Name, filepath.Join(dir, "my.csv"))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		text := spectest.ReadFile(t, s.Rows)
		i, seen := 0, map[string]bool{}
		for row, err := range datasets.PublishedRows(t.Context(), "my.csv", bytes.NewReader(text), nil, false) {
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			x, c := s.Suggestions[i], row.Measurement.Config
			if row.ID != x.RowID || c.Plan.String() != x.Plan || c.Framework != f.Stack || c.Model.Name != "Llama3-8B" || len(row.Assumed) > 0 {
				t.Errorf("%s: row %s is read as %s of %s under %s, assumed %q; want %s", f.Name, row.ID, c.Plan, c.Model.Name, c.Framework, row.Assumed, x.Plan)
			}
			if seen[x.Plan] || x.Why == "" || x.Command == "" || !strings.Contains(x.Command, filepath.Base(x.File)) {
				t.Errorf("%s: %+v", f.Name, x)
			}
			seen[x.Plan] = true
			if file, err := os.ReadFile(x.File); err != nil || string(file) != x.Text || !strings.Contains(x.Text, "16") {
				t.Errorf("%s: launch file %s: %v", f.Name, x.File, err)
			}
			i++
		}
		if i != 4 || !strings.HasSuffix(s.Next, "--devices 16 --rows "+s.Rows) {
			t.Errorf("%s: %d rows, next: %s", f.Name, i, s.Next)
		}
		if _, err := emitTo(t, "llama3-8b", f.Name, s.Rows); err != nil {
			t.Errorf("%s: again: %v", f.Name, err)
		}
		filled := bytes.Replace(text, []byte(",,,\n"), []byte(",1.5,,\n"), 1)
		if err := writeFile(s.Rows, filled); err != nil || bytes.Equal(filled, text) {
			t.Fatal(err)
		}
		if _, err := emitTo(t, "llama3-8b", f.Name, s.Rows); fail.Code(err) != fail.Usage || !strings.Contains(err.Error(), "exists already; leave --emit out to read it") {
			t.Errorf("%s: rows with results: %v", f.Name, err)
		}
		if now, err := os.ReadFile(s.Rows); err != nil || !bytes.Equal(now, filled) {
			t.Errorf("%s: rows with results are replaced: %v", f.Name, err)
		}
	}
}

// TestEmitErrors: a framework that is unknown, or that can start none of the plans.
func TestEmitErrors(t *testing.T) {
	for _, c := range []struct {
		model, framework, want string
		code                   int
	}{
		{"llama3-8b", "megatronn", `unknown framework "megatronn"`, fail.Usage},
		{"gpt2-xl", "torchtitan", "torchtitan cannot express model=decoder with a plain MLP", fail.NoAnswer},
		{"llama3-8c", "megatron", `unknown model "llama3-8c"`, fail.Usage},
	} {
		rows := filepath.Join(t.TempDir(), "my.csv")
		_, err := emitTo(t, c.model, c.framework, rows)
		if err == nil || fail.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: code %d, %v; want %d, %q", c.model, c.framework, fail.Code(err), err, c.code, c.want)
		}
		if _, err := os.Stat(rows); err == nil {
			t.Errorf("%s %s: rows are written", c.model, c.framework)
		}
	}
	o := Options{Model: "llama3-8b", Devices: 16, Emit: "megatron", Points: 4, Rows: "x.csv"}
	if _, err := emit(t.Context(), o, &datadir.Dir{Given: t.TempDir(), Log: io.Discard}, io.Discard); fail.Code(err) != fail.Usage {
		t.Errorf("without an accelerator: %v", err)
	}
}

// TestOwnModelInRows: a model that the catalog lacks is described in the rows, and is read back with as much work.
func TestOwnModelInRows(t *testing.T) {
	m := spec.Model{Name: "mine", Kind: spec.Decoder, Layers: 24, Hidden: 2048, Heads: 16, KVHeads: 8, FFN: 5632, Vocab: 32000, SeqLen: 4096, GatedMLP: true}
	a := options()
	r, _, err := a.request(t.Context(), &query.Resolver{Read: func(func(reader.Store) error) error { return nil }}, "")
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Config{Model: m, SeqLen: 2048, Accelerator: r.Accelerator, Shape: spec.NewShape(8),
		Plan: spec.Plan{DP: 4, TP: 2, MicroBatch: 2, AccumSteps: 4, ZeRO: 1, SequenceParallel: true, Recompute: spec.RecomputeFull, Precision: spec.BF16}.Normal()}
	out, err := readable(t.Context(), []spec.Config{c})
	if err != nil || len(out) != 1 {
		t.Fatalf("%v, %v\n%s", out, err, template([]spec.Config{c}))
	}
	servers := c
	servers.Plan.ParamServers = 2 // no column
	if out, err := readable(t.Context(), []spec.Config{servers, c}); err != nil || len(out) != 1 || out[0] != c {
		t.Errorf("plans that the rows cannot describe are kept: %v, %v", out, err)
	}
	c.Model.SSMLayers, c.Model.SSMHeads, c.Model.SSMHeadDim, c.Model.SSMState, c.Model.SSMGroups = 20, 64, 64, 128, 1 // no column
	if _, err := readable(t.Context(), []spec.Config{c}); fail.Code(err) != fail.NoAnswer || !strings.Contains(err.Error(), "cannot describe the plans of mine") {
		t.Errorf("a model the rows cannot describe: %v", err)
	}
}

// TestFromRows: rows that others measured are scored, stored and fitted; bad ones are named with file and line.
func TestFromRows(t *testing.T) {
	dir := t.TempDir()
	head := "row_id,framework,model,accelerator,num_gpus,dp,tp,pp,zero_stage,recompute,precision,micro_batch,grad_accum,seq_len,step_time_s\n"
	text := head
	for i, mb := range []int{1, 2, 4} {
		for j, ga := range []int{1, 4} {
			text += fmt.Sprintf("r%d%d,Megatron Core@0.15,llama3-8b,h100,8,4,2,1,1,full,bf16,%d,%d,8192,%g\n", i, j, mb, ga, 1.5*float64(mb*ga))
		}
	}
	text += "bad,Megatron Core@0.15,llama3-8b,h100,8,4,2,1,1,full,bf16,two,1,8192,3\n" + "open,Megatron Core@0.15,llama3-8b,h100,8,8,1,1,1,full,bf16,1,1,8192,\n"
	file := filepath.Join(dir, "my.csv")
	if err := writeFile(file, []byte(text)); err != nil {
		t.Fatal(err)
	}
	d, log := &datadir.Dir{Given: filepath.Join(dir, "data"), Log: io.Discard}, &strings.Builder{}
	o := Options{Model: "llama3-8b", Accelerator: "h100", Devices: 8, Seed: 1, Rows: file}
	r, partial, err := fromRows(t.Context(), o, openFile, d, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`my.csv:8: micro_batch "two": is not a whole number`, "my.csv:9: ", "calibrate: calibrating to 6 of 8 rows of my.csv"} {
		if !partial || !strings.Contains(log.String(), want) {
			t.Errorf("partial %t, log lacks %q:\n%s", partial, want, log)
		}
	}
	if len(r.Plans) != 6 || !r.LeaveOne || r.Points != 6 || r.After.Mean >= r.Before.Mean || r.Source != "published/my" || len(r.Best) != 1 {
		t.Errorf("%+v", r)
	}
	reg, err := d.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	if cards, err := reg.List(); err != nil || len(cards) != 1 || cards[0].NFit != 6 {
		t.Errorf("stored fits %v, %v", cards, err)
	}
	if rows, err := d.Rows(t.Context(), store.Filter{Sources: []string{"published/my"}}); err != nil || len(rows) != 6 {
		t.Errorf("%d rows stored, %v", len(rows), err)
	}

	empty := filepath.Join(dir, "empty.csv")
	if err := writeFile(empty, []byte(head+"open,Megatron Core@0.15,llama3-8b,h100,8,8,1,1,1,full,bf16,1,1,8192,\n")); err != nil {
		t.Fatal(err)
	}
	o.Rows = empty
	if _, _, err := fromRows(t.Context(), o, openFile, d, io.Discard); fail.Code(err) != fail.NoAnswer || !strings.Contains(err.Error(), "has no row with a step time") {
		t.Errorf("%v", err)
	}
}
