package datasets

import (
	"strings"
	"testing"
)

// TestRowsContradictory: rows with a step time that their printed rates contradict are doubted, and negative rates are errors.
func TestRowsContradictory(t *testing.T) {
	const head = "row_id,accelerator,num_gpus,model,precision,recompute,micro_batch,global_batch,seq_len,adapter,step_time_s,throughput_value,throughput_unit,tflops_per_gpu,mfu,mem_gib\n"
	// 64 samples of 8192 tokens of Llama 3 8B on 8 H100 are about 430 TFLOP/s per device at 7.76 s.
	const row = "x,h100,8,Llama3-8B,bf16,"
	for cells, want := range map[string]string{
		"none,1,64,8192,,7.76,430,TFLOP/s/GPU,,,":     "",
		"none,1,64,8192,,7.76,,,430,0.43,":            "",
		"none,1,64,8192,,7.76,,,500,,":                "", // full attention
		"none,1,64,8192,,7.76,,,350,,":                "", // no attention
		",1,64,8192,,7.76,,,640,,":                    "", // perhaps with recomputation
		"none,1,64,8192,lora:16,7.76,,,430,,":         "",
		"none,1,64,8192,,7.76,900,TFLOP/s/GPU,,,":     "but throughput_value says 900",
		"none,1,64,8192,,7.76,,,150,,":                "makes 406.9 to 515.7 TFLOP/s per device, but tflops_per_gpu says 150",
		"none,1,64,8192,,,8445,tokens/s/gpu,1300,,":   "but tflops_per_gpu says 1300",
		"none,1,64,8192,,7.76,,,,0.1,":                "but mfu says 98.94",
		"none,1,64,8192,,7.76,,,,43,":                 "an mfu of 43 is more than 1",
		"none,1,64,8192,,7.76,,,2000,,":               "tflops_per_gpu of 2000 TFLOP/s per device is more than their peak rate, 1979 in any format",
		"none,1,64,8192,,7.76,2000,TFLOP/s/GPU,,,":    "throughput_value of 2000 TFLOP/s",
		"none,1,64,8192,,,,,2000,,40":                 "tflops_per_gpu of 2000 TFLOP/s", // of memory alone
		"none,1,64,8192,,7.76,-430,TFLOP/s/GPU,,,":    `throughput_value "-430": is negative`,
		"none,1,64,8192,,7.76,,,-430,,":               `tflops_per_gpu "-430": is negative`,
		"none,1,64,8192,,7.76,,,,-0.4,":               `mfu "-0.4": is negative`,
		"none,1,64,8192,,7.76,,,,,-1":                 `mem_gib "-1": is negative`,
		"none,1,64,8192,,7.76,-430,somethings,,0.43,": `throughput_value "-430": is negative`,
	} {
		rows, bad := readRows(t, "my.csv", head+row+cells+"\n", true)
		got := strings.Join(bad, "")
		for i := range rows {
			got += strings.Join(rows[i].Against, "; ")
			if doubt := rows[i].Measurement.DoubtReason(); (want == "") != (doubt == "") {
				t.Errorf("%s: doubt %q", cells, doubt)
			}
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", cells, got, want)
		}
	}
	// A device without a known peak rate: an mfu says nothing about the step time.
	rows, bad := readRows(t, "my.csv", head+"x,FooChip 9000,8,Llama3-8B,bf16,none,1,64,8192,,20,,,,0.4,\n", true)
	if len(bad) != 0 || len(rows) != 1 || strings.Contains(rows[0].Measurement.DoubtReason(), "mfu") {
		t.Errorf("unknown device: %q, %+v", bad, rows)
	}
}
