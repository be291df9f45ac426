package trace

import (
	"slices"
	"strings"
	"testing"
)

// The defaults are those of the artifact: 400 jobs in about 12,000 s, on 2, 4, 8 and
// 16 devices, of tasks that are equally frequent.
func TestGenerateOnes(t *testing.T) {
	jobs, err := GenerateOnes(OnesOptions{Seed: 1, Jobs: 400, GapSec: 30})
	if err != nil || len(jobs) != 400 {
		t.Fatalf("%d jobs, error %v", len(jobs), err)
	}
	count := map[string]int{}
	for i := range jobs {
		j := &jobs[i]
		if err := j.Validate(); err != nil {
			t.Error(err)
		}
		name, _, _ := strings.Cut(string(j.ID), "-")
		count[name]++
		if i > 0 && j.Submit < jobs[i-1].Submit {
			t.Errorf("job %s is submitted before %s", j.ID, jobs[i-1].ID)
		}
		if j.Model.Name == "cifar10" && (j.Epochs < 23*20000/50000. || j.Epochs > 38*40000/50000. || j.GlobalBatch != 1024 || j.Devices != 4) {
			t.Errorf("%+v", j)
		}
	}
	if n := count["bert"]; n < 200 || n > 280 {
		t.Errorf("%d jobs of 400 train bert, want 240", n)
	}
	if last := jobs[399].Submit.Seconds(); last < 10000 || last > 14000 {
		t.Errorf("the last of 400 jobs comes after %g s, want about 12000", last)
	}
	again, _ := GenerateOnes(OnesOptions{Seed: 1, Jobs: 400, GapSec: 30})
	other, _ := GenerateOnes(OnesOptions{Seed: 2, Jobs: 400, GapSec: 30})
	if !slices.Equal(jobs, again) || slices.Equal(jobs, other) {
		t.Error("the jobs do not follow from the seed")
	}
	more, _ := GenerateOnes(OnesOptions{Seed: 1, Jobs: 500, GapSec: 60})
	for i := range jobs {
		if more[i].ID != jobs[i].ID || more[i].Epochs != jobs[i].Epochs {
			t.Fatalf("job %d of 500 is %+v, of 400 %+v", i, more[i], jobs[i])
		}
	}
}

func TestGenerateOnesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"-1": "-1 jobs", "0": "0 jobs", "4,gap-s=-2": "every -2 s", "4,gap-s=NaN": "every NaN s", "x": `"x" is not a number of jobs`, "4,size=3": "is not gap-s=SECONDS",
	} {
		o, err := ParseOnesOptions(text)
		if err == nil {
			_, err = GenerateOnes(o)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}
