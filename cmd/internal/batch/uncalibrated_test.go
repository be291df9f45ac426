package batch

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// TestCalibratedToNothing: a file of measured rows leaves every prediction as it is without the
// file, bit by bit, if no row can be used. A file without rows is an error.
func TestCalibratedToNothing(t *testing.T) {
	const (
		head  = "row_id,model,accelerator,framework,num_gpus,tp,dp,micro_batch,grad_accum,seq_len,status,step_time_s,mem_gib\n"
		plans = "a,Llama2-7B,A100-80GB-SXM,Megatron Core@0.12,8,2,4,1,8,4096,,,\n" +
			"b,Llama3-8B,H100-80GB-SXM,,16,1,16,2,4,8192,,,\n" +
			"c,GPT3-175B,H100-80GB-SXM,torchtitan,8,1,8,1,1,2048,,,\n"
		doubted = "a,Llama2-7B,A100-80GB-SXM,Megatron Core@0.12,8,2,4,1,8,4096,suspect,4,60\n" + // its table suspects it
			"b,Llama2-7B,A100-80GB-SXM,Megatron Core@0.12,8,2,4,1,8,4096,oom,,\n" +
			"c,Llama2-7B,A100-80GB-SXM,Megatron Core@0.12,8,2,4,1,8,4096,ok,4000000,60\n" + // in another unit
			"d,Llama2-7B,A100-80GB-SXM,Megatron Core@0.12,8,2,4,1,8,4096,ok,0.004,60\n" // faster than the devices
	)
	predict := func(measured string) (rows []Row, log string, verdict error) {
		var text strings.Builder
		o := Options{Family: "hybrid", Explain: true, Log: &text}
		if measured != "" {
			o.Calibrate = "seen.csv"
			o.Open = func(path string) (io.ReadCloser, string, error) {
				return io.NopCloser(strings.NewReader(measured)), path, nil
			}
		}
		run, err := New(t.Context(), o)
		if err != nil {
			return nil, text.String(), err
		}
		err = run.Predict(strings.NewReader(head+plans), "rows.csv", func(r *Row) error { rows = append(rows, *r); return nil })
		run.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return rows, text.String(), run.Verdict("rows.csv")
	}
	want, _, _ := predict("")
	if len(want) != 3 || want[0].StepTimeSec == nil || want[0].StepTimeLo == nil || want[0].MemGiB == nil || want[0].Explain == nil || want[1].StepTimeSec == nil {
		t.Fatalf("without measured rows: %+v", want)
	}
	got, log, verdict := predict(head + doubted)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calibrated to rows in doubt (-without +with):\n%s", d)
	}
	if !strings.Contains(log, "predict: calibrating to 0 of 4 rows of seen.csv") || strings.Contains(log, "ignored") || fail.Code(verdict) != fail.Partial {
		t.Errorf("%v, standard error:\n%s", verdict, log)
	}
	if _, _, err := predict(head); err == nil || !strings.Contains(err.Error(), "seen.csv has no rows below its header") {
		t.Errorf("a file without rows: %v", err)
	}
}
