package worker

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// checkBar is the largest relative error that counts as the same result, compared with one process training on
// the same global batch in fp32.
const checkBar = 1e-4

// checkReport is the output of pacer_worker/check.py.
type checkReport struct {
	Cases []struct {
		checked
		Steps                  int
		Loss, Gradient, Weight float64
		Worst                  string
	}
	Unsupported []struct {
		checked
		Why string
	}
	Broken []struct {
		checked
		What  string
		Error float64
	}
	Wide       []string // parts with hidden states that are no longer bf16
	Parameters []struct {
		Model            string
		Count, Published int64
	}
}

// checked identifies a case: a small network and a plan.
type checked struct {
	Model string
	Plan  spec.Plan
}

func (c checked) String() string { return c.Model + " " + c.Plan.String() }

// TestPlansTrainAlike runs every kind of plan on up to four CPU processes: loss, gradients and weights after 1
// and 5 steps equal those of one process.
func TestPlansTrainAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("trains some 200 small networks: half a minute on two idle cores")
	}
	report := runCheck(t, "2,4")
	seen := map[string]bool{}
	worst := 0.0
	for _, c := range report.Cases {
		e := max(c.Loss, c.Gradient, c.Weight)
		if e > checkBar {
			t.Errorf("%s after %d steps: loss off by %.1e, gradients %.1e, weights %.1e (worst %s), want at most %g",
				c, c.Steps, c.Loss, c.Gradient, c.Weight, c.Worst, checkBar)
		}
		worst = max(worst, e)
		if c.Steps == 5 {
			seen[c.String()] = true
		}
	}
	t.Logf("%d cases, largest error %.1e", len(report.Cases), worst)
	if want := 234; len(report.Cases) < want { // without FSDP; 36 more with FSDP
		t.Errorf("%d cases, want at least %d", len(report.Cases), want)
	}
	for _, model := range []string{"gpt", "llama", "bert"} {
		for _, plan := range everyone {
			if !seen[model+" "+plan] {
				t.Errorf("%s %s was not checked", model, plan)
			}
		}
	}
	if want := 8; len(report.Parameters) != want {
		t.Errorf("%d networks were counted, want %d", len(report.Parameters), want)
	}
	for _, p := range report.Parameters {
		if p.Count != p.Published {
			t.Errorf("%s has %d parameters, published are %d", p.Model, p.Count, p.Published)
		}
	}
	for _, c := range report.Unsupported {
		if c.Plan.ZeRO < 2 || !strings.Contains(c.Why, "FSDP") {
			t.Errorf("%s was refused: %s", c, c.Why)
		}
	}
	if len(report.Wide) > 0 {
		t.Errorf("hidden states are wider than the plan's bf16 after %q", report.Wide)
	}
	if want := 7; len(report.Broken) != want {
		t.Errorf("%d plans were broken on purpose, want %d", len(report.Broken), want)
	}
	for _, b := range report.Broken {
		if !(b.Error > 100*checkBar) {
			t.Errorf("%s without %q: error %.1e, the check cannot see what it is for", b.checked, b.What, b.Error)
		}
	}
}

// everyone lists the plans that must have been checked with each of the main networks, as spec.Plan writes
// them.
var everyone = []string{
	"dp=1,tp=1,pp=1,mb=2,ga=4",
	"dp=1,tp=1,pp=1,mb=8,ga=1,recompute=full",
	"dp=1,tp=1,pp=1,mb=8,ga=1,recompute=selective",
	"dp=1,tp=1,pp=1,mb=4,ga=2,offload=optimizer",
	"dp=2,tp=1,pp=1,mb=4,ga=1",
	"dp=2,tp=1,pp=1,mb=2,ga=2",
	"dp=2,tp=1,pp=1,mb=4,ga=1,zero=1",
	"dp=2,tp=1,pp=1,mb=2,ga=2,zero=1,offload=optimizer",
	"dp=1,tp=2,pp=1,mb=8,ga=1",
	"dp=1,tp=2,pp=1,mb=8,ga=1,sp=1",
	"dp=1,tp=2,pp=1,mb=4,ga=2,recompute=full,sp=1",
	"dp=1,tp=1,pp=2,mb=8,ga=1",
	"dp=1,tp=1,pp=2,mb=4,ga=2",
	"dp=1,tp=1,pp=2,mb=2,ga=4",
	"dp=1,tp=1,pp=2,mb=2,ga=4,recompute=full",
	"dp=1,tp=1,pp=2,mb=2,ga=4,recompute=selective",
	"dp=2,tp=2,pp=1,mb=2,ga=2,sp=1",
	"dp=2,tp=1,pp=2,mb=1,ga=4",
	"dp=1,tp=2,pp=2,mb=2,ga=4,sp=1",
	"dp=1,tp=1,pp=4,mb=4,ga=2",
	"dp=1,tp=4,pp=1,mb=8,ga=1,sp=1",
}

// runCheck runs check.py with the given numbers of processes, in addition to one process.
func runCheck(t *testing.T, ranks string) checkReport {
	t.Helper()
	python := torchPython(t)
	out := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithTimeout(context.Background(), spectest.Patience(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "pacer_worker/check.py", "--out", out, "--ranks", ranks)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its child processes
	cmd.WaitDelay = 10 * time.Second
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("check.py: %v\n%s", err, said)
	}
	b := spectest.ReadFile(t, out)
	var report checkReport
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return report
}
