package schedulertest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// states is a policy that keeps all grants, and prints the state of every job as its reason.
type states struct{}

func (states) Decide(_ context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true, Why: map[spec.JobID]string{}}
	for _, j := range s.Jobs() {
		d.Why[j.Job.ID] = fmt.Sprintf("%s since %v, waited %v, attained %g", j.Phase, j.Since, j.LongestWait(s.Now), j.Attained)
	}
	return d, nil
}

func scenarioFile(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text = "cluster\n1x2xA\n----\n2 devices on 1 nodes\n\n" + text
	spectest.WriteFile(t, filepath.Join(dir, "file"), []byte(text), 0o600)
	return dir
}

func makeStates(string, scheduler.Oracle) (scheduler.Policy, error) { return states{}, nil }

// The keys of jobs set their states.
func TestScenarioStates(t *testing.T) {
	schedulertest.Scenarios(t, scenarioFile(t, `jobs
a submit=10
b submit=10 since=30 waited=50 attained=7
c submit=10 since=30 on=0:1
----

decide policy=states now=40
----
a waits waiting since 10s, waited 30s, attained 0
b waits waiting since 30s, waited 50s, attained 7
c stays 0:1 running since 30s, waited 0s, attained 0
`), makeStates)
}

// Draws of failed random tests, which rapid stores beside scenarios, are not read.
func TestScenariosIgnoreDraws(t *testing.T) {
	dir := scenarioFile(t, "")
	draws := filepath.Join(dir, "rapid", "TestRandom")
	if err := os.MkdirAll(draws, 0o755); err != nil {
		t.Fatal(err)
	}
	spectest.WriteFile(t, filepath.Join(draws, "x.fail"), []byte("# draws\nv0.4.8#1\n0x1\n"), 0o600)
	schedulertest.Scenarios(t, dir, makeStates)
}

// A command that fails is not rewritten, unless its expected output is an error; neither is
// any file without a selection.
func TestScenarioRewrite(t *testing.T) {
	const typo = "jobs\na sbmit=10\n----\n"
	for _, c := range []struct{ name, text, run, says string }{
		{"typo", typo, "^TestFaultyScenario$/file", `jobs is not rewritten, as it fails: schedulertest: "a sbmit=10": unknown key "sbmit", want one of model, `},
		{"no selection", typo, "^TestFaultyScenario$", "-rewrite needs -run TestFaultyScenario/POLICY"},
		{"expected", typo + "error: any\n", "^TestFaultyScenario$/file", "PASS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := scenarioFile(t, c.text)
			path := filepath.Join(dir, "file")
			before, _ := os.ReadFile(path)
			out, err := runFault(c.run, dir, "-rewrite")
			wantText(t, out, err == nil == (c.says == "PASS"), c.says)
			after, _ := os.ReadFile(path)
			if rewritten := string(before) != string(after); rewritten != (c.says == "PASS") {
				t.Errorf("the file is rewritten: %v:\n%s", rewritten, after)
			}
		})
	}
}

func TestFaultyScenario(t *testing.T) {
	dir := os.Getenv(faultVar)
	if dir == "" {
		return // it runs in a process of TestScenarioRewrite
	}
	schedulertest.Scenarios(t, dir, makeStates)
}
