package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/server/simqueue"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// ended waits until a simulation has ended.
func ended(t *testing.T, s *Server, id string) (out simqueue.Simulation) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		out = getJSON[simqueue.Simulation](t, s, "/v1/simulations/"+id)
		if out.Status != "waiting" && out.Status != "running" {
			return out
		}
		if time.Now().After(until) {
			t.Fatalf("simulation %s is %s after a minute", id, out.Status)
		}
	}
}

// getJSON returns the answer to a GET.
func getJSON[T any](t *testing.T, s *Server, path string) (out T) {
	t.Helper()
	w := do(s, http.MethodGet, path, "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, w.Code, w.Body, err)
	}
	return out
}

// A simulation has the figures of pacer simulate, the reasons of the jobs asked about, and a report.
func TestSimulation(t *testing.T) {
	s := newServer(t, Options{})
	started := post[simqueue.Simulation](t, s, "/v1/simulations", `{"workload":"jobs=40,per-hour=40,models=llama3-8b+opt-1.3b","cluster":"2x8xH100","policies":["fifo-backfill","rubick:price=1"],"truth":"fitted:analytic","start_cost_s":30,"explain":["job-0007"],"seed":3}`)
	got := ended(t, s, started.ID)
	if got.Status != "done" || got.Jobs != 40 || got.Finished != 80 || len(got.Runs) != 2 {
		t.Fatalf("%+v", got)
	}
	run, err := experiment.New(t.Context(), experiment.Options{Workload: "synthetic:jobs=40,per-hour=40,models=llama3-8b+opt-1.3b", Cluster: "2x8xH100", Policy: "fifo-backfill,rubick:price=1", Truth: "fitted:analytic", StartCost: "30", Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	results, err := run.Run(t.Context(), experiment.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range report.SummarizeAll(results, run.Score) {
		if g := got.Runs[i]; g.Policy != want.Policy || g.AvgJCT.String() != want.AvgJCT.String() || g.Makespan.String() != want.Makespan.String() || g.Restarts != want.Restarts {
			t.Errorf("%+v, want %+v", g, want)
		}
	}
	policies := map[string]int{}
	for _, e := range got.Events {
		if policies[e.Policy]++; e.JobID != "job-0007" {
			t.Errorf("event of another job: %+v", e)
		}
	}
	if len(policies) != 2 || got.Events[0].Event != "submitted" {
		t.Errorf("%+v", got.Events)
	}
	if all := getJSON[simqueue.Simulations](t, s, "/v1/simulations"); len(all.Simulations) != 1 || all.Simulations[0].Runs != nil || all.Simulations[0].Status != "done" {
		t.Errorf("%+v", all)
	}
	page := do(s, http.MethodGet, got.Report, "")
	if policy := page.Header().Get("Content-Security-Policy"); page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "rubick") || strings.Contains(policy, "unsafe") || strings.Count(policy, "sha256-") < 3 {
		t.Errorf("%d %s", page.Code, policy)
	}
	if w := do(s, http.MethodDelete, "/v1/simulations/"+started.ID, ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"", "/report"} {
		if w := do(s, http.MethodGet, "/v1/simulations/"+started.ID+path, ""); w.Code != http.StatusNotFound {
			t.Errorf("deleted: %d %s", w.Code, w.Body)
		}
	}
}

// Jobs of a file are those of its rows.
func TestSimulationOfJobs(t *testing.T) {
	s := newServer(t, Options{})
	text, err := json.Marshal(map[string]any{"jobs": []string{"job_id,submit_s,gpus,duration_s", "a,0,4,100", "b,10,8,50", "c,x,1,1"}, "cluster": "1x8xA100", "policies": []string{"fifo"}})
	if err != nil {
		t.Fatal(err)
	}
	got := ended(t, s, post[simqueue.Simulation](t, s, "/v1/simulations", string(text)).ID)
	if len(got.Runs) != 1 || got.Runs[0].Makespan != 150 || got.Runs[0].AvgJCT != 120 || len(got.Warnings) != 1 {
		t.Errorf("%+v", got)
	}
}

// What cannot be simulated, or names a file of the server, is refused with the field at fault.
func TestSimulationRefused(t *testing.T) {
	s := newServer(t, Options{})
	for _, c := range []struct{ body, status, says string }{
		{`"workload":"fit=/etc/passwd"`, "422", "the server reads no file"},
		{`"workload":"jobs=10,resample=x"`, "422", "the server reads no file"},
		{`"workload":"jobs=10","cluster":"here.yaml"`, "422", "the server reads no file"},
		{`"workload":"jobs=10","truth":"gavel:x"`, "422", "the server reads no file"},
		{`"workload":"jobs=10","truth":" gavel:x"`, "422", "the server reads no file"},
		{`"workload":"jobs=10","belief":"goodput:x"`, "422", "the server reads no file"},
		{`"workload":"jobs=10","belief":"online:goodput:x"`, "422", "goodput"},
		{`"workload":"jobs=3000,jobs=10"`, "422", "3000 jobs"},
		{`"workload":"jobs=10","policies":["dl2:model=x"]`, "422", "reads a file"},
		{`"workload":"jobs=10","policies":["nosuch"]`, "422", "nosuch"},
		{`"workload":"jobs=10","policies":["` + "fifo,fifo-backfill,las,srtf,edf,tiresias,gittins,themis,optimus,gavel-las,sia,rubick,pacer" + `"]`, "422", "13 policies"},
		{`"workload":"jobs=2001"`, "422", "2001 jobs"},
		{`"workload":"ones=5000"`, "422", "5000 jobs"},
		{`"workload":"jobs=few"`, "422", "few"},
		{`"workload":"jobs=10,models=nosuch"`, "404", "nosuch"},
		{`"workload":"jobs=10","cluster":"1000x8xH100"`, "422", "8000 devices"},
		{`"workload":"jobs=10","cluster":"2x8xnosuch"`, "404", "nosuch"},
		{`"workload":"jobs=10","explain":["nosuch"]`, "422", "is no job"},
		{`"workload":"jobs=10","jobs":["job_id"]`, "422", "want one of them"},
		{`"cluster":"2x8xH100"`, "422", "want one of them"},
		{`"jobs":["a,b","1,2"]`, "422", "jobs: no column job_id"},
	} {
		body := c.body
		for field, value := range map[string]string{"cluster": `"2x8xH100"`, "policies": `["fifo"]`} {
			if !strings.Contains(body, `"`+field+`"`) {
				body += fmt.Sprintf(`,%q:%s`, field, value)
			}
		}
		w := do(s, http.MethodPost, "/v1/simulations", "{"+body+"}")
		if fmt.Sprint(w.Code) != c.status || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), "pacer-jobs") {
			t.Errorf("%s: %d %s, want %s with %q", c.body, w.Code, w.Body, c.status, c.says)
		}
	}
	if all := getJSON[simqueue.Simulations](t, s, "/v1/simulations"); len(all.Simulations) != 0 {
		t.Errorf("%+v", all)
	}
}

// Simulations wait for each other. A number of them are kept, and the end of the server cancels all.
func TestSimulationsWait(t *testing.T) {
	s := newServer(t, Options{})
	turn := func() (done func()) {
		t.Helper()
		done, err := s.simulations.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	done := turn()
	var last *httptest.ResponseRecorder
	for range simqueue.MaxSimulations + 1 {
		last = do(s, http.MethodPost, "/v1/simulations", `{"workload":"jobs=10","cluster":"2x8xH100","policies":["fifo"]}`)
	}
	if last.Code != http.StatusTooManyRequests || last.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", last.Code, last.Body)
	}
	if w := do(s, http.MethodDelete, "/v1/simulations/2", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	done()
	if got := ended(t, s, "16"); got.Status != "done" {
		t.Errorf("%+v", got)
	}
	if w := do(s, http.MethodPost, "/v1/simulations", `{"workload":"jobs=10","cluster":"2x8xH100","policies":["fifo"]}`); w.Code != http.StatusOK {
		t.Errorf("with place: %d %s", w.Code, w.Body)
	}
	turn()
	waits := post[simqueue.Simulation](t, s, "/v1/simulations", `{"workload":"jobs=10","cluster":"2x8xH100","policies":["fifo"]}`)
	s.simulations.Close()
	if got := ended(t, s, waits.ID); got.Status != "cancelled" {
		t.Errorf("%+v", got)
	}
}

// A request that is repeated with its idempotency key gets the same simulation. Operations that keep no key refuse it.
func TestSimulationOnce(t *testing.T) {
	s := newServer(t, Options{})
	const path, url = "/v1/simulations", "http://localhost/v1/simulations"
	const body = `{"workload":"jobs=%d","cluster":"1x8xH100","policies":["fifo"]}`
	simulate := func(jobs int, key string) (out simqueue.Simulation) {
		t.Helper()
		w := request(s, http.MethodPost, url, fmt.Sprintf(body, jobs), "Idempotency-Key", key)
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return out
	}
	first := simulate(4, "a")
	if again := simulate(4, "a"); again.ID != first.ID {
		t.Errorf("repeated, simulation %s became %s", first.ID, again.ID)
	}
	if w := request(s, http.MethodPost, url, fmt.Sprintf(body, 5), "Idempotency-Key", "a"); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "another body") {
		t.Errorf("another body: %d %s", w.Code, w.Body)
	}
	simulate(4, "b")
	post[simqueue.Simulation](t, s, path, fmt.Sprintf(body, 4))
	post[simqueue.Simulation](t, s, path, fmt.Sprintf(body, 4))
	if n := len(getJSON[simqueue.Simulations](t, s, path).Simulations); n != 4 {
		t.Errorf("%d simulations, want 4", n)
	}
	do(s, http.MethodDelete, path+"/"+first.ID, "")
	if again := simulate(4, "a"); again.ID == first.ID {
		t.Error("a simulation that was deleted")
	}
	for _, other := range []string{"fit", "campaigns"} {
		if w := request(s, http.MethodPost, "http://localhost/v1/"+other, `{}`, "Idempotency-Key", "a"); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "keeps none") {
			t.Errorf("%s: %d %s", other, w.Code, w.Body)
		}
	}
}
