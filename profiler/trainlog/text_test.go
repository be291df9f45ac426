package trainlog

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestPlainText: logs are read as users keep them, and other files are refused by name.
func TestPlainText(t *testing.T) {
	text := spectest.ReadFile(t, "testdata/trainer.log")
	want := readFile(t, "trainer.log")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text)
	z.Close()
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"gzip": packed.Bytes(), "UTF-16": wide, "byte order mark": append([]byte("\xef\xbb\xbf"), text...)} {
		if l, err := Read(bytes.NewReader(file), ""); err != nil || len(l.Lines) != len(want.Lines) || l.GlobalBatch != want.GlobalBatch {
			t.Errorf("%s: %d lines, %v; want %d", name, len(l.Lines), err, len(want.Lines))
		}
	}
	for file, want := range map[string]string{"\x28\xb5\x2f\xfd\x00": "compressed by zstd, want text or gzip", "\x1f\x8b\x09": "gzip", string(packed.Bytes()[:packed.Len()/2]): "EOF"} {
		if _, err := Read(strings.NewReader(file), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.4q: %v, want %q", file, err, want)
		}
	}
}

// TestCutLine: digits that are missing at the end of a log make no other step time.
func TestCutLine(t *testing.T) {
	text := " iteration 10/ 20 | elapsed time per iteration (ms): 812.6 |\n iteration 20/ 20 | elapsed time per iteration (ms): 8"
	if l, err := Read(strings.NewReader(text), ""); err != nil || len(l.Lines) != 1 {
		t.Errorf("%+v, %v; want one line", l.Lines, err)
	}
	if l, err := Read(strings.NewReader(text+"11.3 |"), ""); err != nil || len(l.Lines) != 2 {
		t.Errorf("%+v, %v; want two lines", l.Lines, err)
	}
}

// TestOneLine: the only line of a log is also of the warm-up.
func TestOneLine(t *testing.T) {
	l, err := Read(strings.NewReader(" iteration 100/ 100 | elapsed time per iteration (ms): 812.6 |\n"), "")
	if got, errTime := l.Time(plan(1, 1, 1), 0, 5, 0); err != nil || errTime == nil {
		t.Errorf("%v, timed as %v", err, got.StepSec)
	}
}

// TestRampUp: batches may be smaller during the warm-up only.
func TestRampUp(t *testing.T) {
	var text strings.Builder
	for step := 10; step <= 100; step += 10 {
		fmt.Fprintf(&text, " iteration %d/ 100 | elapsed time per iteration (ms): %d.5 | global batch size: %d |\n", step, 10*min(step, 50), min(step, 50)*64/50)
	}
	l, err := Read(strings.NewReader(text.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(plan(8, 2, 4), 0, 0, 40); err != nil {
		t.Error(err)
	}
	if got, err := l.Time(plan(8, 2, 4), 0, 40, 0); err != nil || len(got.StepSec) != 6 || got.StepSec[0] != 0.5005 {
		t.Errorf("%+v, %v; want six values of 0.5005 s", got, err)
	}
	if err := l.Check(plan(8, 2, 4), 0, 0, 5); err == nil || !strings.Contains(err.Error(), "step 10 in the log of megatron has 12 samples per step, the plan dp=8,tp=1,pp=1,mb=2,ga=4 has 64") {
		t.Error(err)
	}
}

// TestMegatronArguments: a plan that contradicts the arguments is refused. Steps of Megatron-DeepSpeed are in seconds.
func TestMegatronArguments(t *testing.T) {
	const text = `------------------------ arguments ------------------------
  context_parallel_size ........................... 1
  data_parallel_size .............................. 2
  micro_batch_size ................................ 4
  pipeline_model_parallel_size .................... 2
  seq_length ...................................... 2048
  tensor_model_parallel_size ...................... 4
 iteration        5/      20 | consumed samples:          320 | elapsed time per iteration (s): 2.31 | global batch size:    64 |
 iteration       10/      20 | consumed samples:          640 | elapsed time per iteration (s): 0.81 | global batch size:    64 |
`
	l, err := Read(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	good := plan(2, 4, 8)
	good.TP, good.PP = 4, 2
	if got, err := l.Time(good, 2048, 5, 0); err != nil || len(got.StepSec) != 1 || got.StepSec[0] != 0.81 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := l.Check(good, 2048, 0, 0); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func() int{
		"has 4 tensor-parallel ranks, the plan dp=2,tp=1,pp=2,mb=4,ga=8 has 1":       func() int { good.TP = 1; return 2048 },
		"has 2 pipeline stages, the plan dp=2,tp=4,pp=1,mb=4,ga=8 has 1":             func() int { good.PP = 1; return 2048 },
		"has 4 samples per micro-batch, the plan dp=2,tp=4,pp=2,mb=8,ga=4 has 8":     func() int { good.MicroBatch, good.AccumSteps = 8, 4; return 2048 },
		"has 2048 tokens per sample, the plan dp=2,tp=4,pp=2,mb=4,ga=8 has 4096":     func() int { return 4096 },
		"has 2 data-parallel replicas, the plan dp=4,tp=4,pp=2,mb=4,ga=4 has 4":      func() int { good.DP, good.AccumSteps = 4, 4; return 2048 },
		"has 1 context-parallel ranks, the plan dp=2,tp=4,pp=2,cp=2,mb=4,ga=8 has 2": func() int { good.CP = 2; return 2048 },
	} {
		before := good
		seq := change()
		if err := l.Check(good, seq, 0, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		good = before
	}
}

// TestLabels: lines that launchers and containers mark are read.
func TestLabels(t *testing.T) {
	const bar, deep = "Epoch 0:  50%|#####     | 50/100 [00:10<00:10,  4.93it/s, v_num=0]", "[2025-03-02 10:00:07,123] [INFO] [timer.py:264:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=2, MemAllocated=1GB, MaxMemAllocated=2GB"
	for _, mark := range []string{"", "[rank0]: ", "[worker12]: ", "[1,0]<stdout>:", "(RayTrainWorker pid=123, ip=10.0.0.1) ", "[pod/train-0/pytorch] ", "2025-03-02T10:00:07.123456789Z ",
		"2025-03-02T10:00:07.123+01:00 stderr F "} {
		if l, err := Read(strings.NewReader(mark+bar+"\n"), Lightning); err != nil || len(l.Lines) != 1 {
			t.Errorf("%q: %+v, %v", mark, l, err)
		}
	}
	if l, err := Read(strings.NewReader("worker-1: "+deep+"\n"), DeepSpeed); err != nil || len(l.Lines) != 1 || l.Lines[0].At.IsZero() {
		t.Errorf("of pdsh: %+v, %v", l, err)
	}
}

// TestPipelineEngine: steps of DeepSpeed's pipelines are read, also where the loss is none.
func TestPipelineEngine(t *testing.T) {
	l, err := Read(strings.NewReader("steps: 10 loss: 2.3012 iter time (s): 0.912 samples/sec: 70.2\nsteps: 20 loss: nan aux_loss: 0.1 iter time (s): 0.512 samples/sec: 125.0\n"), "")
	if got, errTime := l.Time(plan(4, 4, 4), 0, 5, 0); err != nil || errTime != nil || l.Format != DeepSpeed || len(got.StepSec) != 1 || got.StepSec[0] != 0.512 {
		t.Errorf("%+v, %+v, %v, %v", l, got, err, errTime)
	}
}

// otherLine is of no format.
const otherLine = "node7:1234:5678 [0] NCCL INFO Channel 03/24 : 0[0] -> 1[1] via P2P/CUMEM/read comm 0x55d nranks 08\n"

// TestOtherLines: lines of no format take no time for regular expressions, as their allocations show.
func TestOtherLines(t *testing.T) {
	var r Reader
	line := []byte(otherLine)
	if n := testing.AllocsPerRun(100, func() { _, _ = r.Write(line) }); n > 0 {
		t.Errorf("%g allocations, want none", n)
	}
}

func BenchmarkOtherLines(b *testing.B) {
	var r Reader
	line := []byte(otherLine)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = r.Write(line)
	}
}
