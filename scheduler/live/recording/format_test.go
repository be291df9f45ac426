package recording_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// format is the recording of a job that runs a minute on a node. It may only be added to: older files stay readable.
const format = `{"pacer_recording":1,"at":"2026-01-01T00:00:00Z","policy":"p","start_cost_s":20,"even":true,` +
	`"types":[{"devices":4,"accelerator":{"name":"x"},"cpus":8,"host_bytes":1024,"link":{"inter_bps":5}}],"nodes":[{"name":"n1","type":0,"mode":"up","used":1,"used_milli_cpus":500,"used_bytes":512}]}
{"at":"2026-01-01T00:00:10Z","models":[{"name":"a","layers":2}],"jobs":[{"id":"j","request":{"submitted":"2026-01-01T00:00:05Z",` +
	`"model":0,"global_batch":8,"plan":"dp=2,tp=1,pp=1,mb=4,ga=1","devices":2,"milli_cpus":1000,"steps":100,"tenant":"t","guaranteed":true},"phase":"held","done":0}]}
{"at":"2026-01-01T00:00:11Z","jobs":[{"id":"j","phase":"running","plan":"dp=2,mb=4","slots":"n1=2","run_plan":"dp=2,mb=4","held":"n1=2","started":"2026-01-01T00:00:10.5Z","done":0}]}
{"at":"2026-01-01T00:01:10.5Z","jobs":[{"id":"j","phase":"running","plan":"dp=2,mb=4","slots":"n1=2","run_plan":"dp=2,mb=4","held":"n1=2","started":"2026-01-01T00:00:10.5Z","done":50,"done_at":"2026-01-01T00:00:30Z"}],"ended":["j"]}
{"at":"2026-01-01T00:01:20Z","jobs":[{"id":"k","request":{"submitted":"2026-01-01T00:00:05Z","model":0,"devices":1,"steps":9},"phase":"held","done":0}]}
{"at":"2026-01-01T00:01:30Z","ended":["k"],"cancelled":["k"]}
{"at":"2026-01-01T00:02:00Z"}
`

// TestFormat: the written file is the one of the format, and is read as what was observed.
func TestFormat(t *testing.T) {
	at := livetest.Epoch
	j := live.Job{
		Spec:      spec.Job{ID: "j", Model: spec.Model{Name: "a", Layers: 2}, GlobalBatch: 8, Plan: spec.Plan{DP: 2, TP: 1, PP: 1, MicroBatch: 4, AccumSteps: 1}, Devices: 2, Steps: 100, Host: spec.Host{MilliCPUs: 1000}, Tenant: "t", Guaranteed: true},
		Submitted: at.Add(5 * time.Second),
	}
	s := live.State{Even: true, Nodes: []live.Node{{Name: "n1", UsedDevices: 1, UsedHost: spec.Host{MilliCPUs: 500, Bytes: 512},
		Type: spec.NodeGroup{Devices: 4, Accelerator: spec.Accelerator{Name: "x"}, CPUs: 8, HostBytes: 1024, Link: spec.Link{InterBps: 5}}}}}
	path := filepath.Join(t.TempDir(), "record.jsonl")
	w := newWriter(t, path, recording.Session{Policy: "p", StartSec: 20})
	w.Observe(at, &s)
	s.Jobs = []live.Job{j, {Spec: spec.Job{ID: "impossible"}}, {Spec: j.Spec, Phase: live.Ended}}
	w.Observe(at.Add(10*time.Second), &s)
	w.Observe(at.Add(10*time.Second), &s) // nothing new
	s.Jobs[0].Phase, s.Jobs[0].Started = live.Running, at.Add(10500*time.Millisecond)
	slots := live.Slots{"n1": 2}
	s.Jobs[0].Record = live.Record{Generation: 1, Plan: "dp=2,mb=4", Slots: slots, RunGeneration: 1, RunPlan: "dp=2,mb=4", RunSlots: slots}
	w.Observe(at.Add(11*time.Second), &s)
	s.Jobs[0].Done = 50
	w.Observe(at.Add(30*time.Second), &s) // progress alone
	s.Jobs = s.Jobs[1:]
	w.Observe(at.Add(70500*time.Millisecond), &s)
	s.Jobs = []live.Job{{Spec: spec.Job{ID: "k", Model: j.Spec.Model, Devices: 1, Steps: 9}, Submitted: j.Submitted}}
	w.Observe(at.Add(80*time.Second), &s)
	s.Jobs, s.Cancelled = nil, []spec.JobID{"j", "k"}
	w.Observe(at.Add(90*time.Second), &s)
	if err := w.Close(at.Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != format {
		t.Errorf("wrote\n%s\nwant\n%s", text, format)
	}
	r := read(t, path)
	want := j.Spec
	want.Submit = 5 * time.Second
	if want.Plan, err = spec.ParsePlan(want.Plan.String()); err != nil {
		t.Fatal(err)
	}
	if len(r.Jobs) != 2 || r.Jobs[1].ID != "k" || r.Jobs[1].Cancelled != 90*time.Second || r.Jobs[1].Counts() || r.Jobs[0].Cancelled >= 0 {
		t.Fatalf("jobs %+v", r.Jobs)
	}
	used := sim.Occupation{Slot: scheduler.Slot{Devices: 1, Host: spec.Host{MilliCPUs: 500, Bytes: 512}}}
	if len(r.Usage) != 2 || r.Usage[0] != used || r.Usage[1] != (sim.Occupation{At: 2 * time.Minute}) {
		t.Errorf("usage %+v", r.Usage)
	}
	if r.Jobs[0].Job != want || !r.Jobs[0].Counts() || len(r.Jobs[0].Runs) != 1 || !r.Last.Even || r.To != 2*time.Minute || r.Others != 120 {
		t.Fatalf("%+v", r)
	}
	if run := r.Jobs[0].Runs[0]; run.Start != 10500*time.Millisecond || run.End != 70500*time.Millisecond || run.StartCost != 20*time.Second || run.Grant.Devices() != 2 {
		t.Errorf("run %+v", run)
	}
	if g := r.Cluster.Groups; len(g) != 1 || g[0].Link.InterBps != 5 || g[0].Count != 1 || g[0].HostBytes != 1024 {
		t.Errorf("cluster %+v", g)
	}
}

// TestReadErrors: what is wrong is an error with file, line and value, and unknown fields are none.
func TestReadErrors(t *testing.T) {
	lines := strings.SplitAfter(format, "\n")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `f: no whole line, want a file of pacer schedule --record`},
		{"other file", "time,name\n", `f:1: "time,name" is no recording`},
		{"other JSON", `{"at":"2026-01-01T00:00:00Z"}`, `f:1: "{\"at\":`},
		{"torn first line", lines[0][:30], `f: no whole line`},
		{"version", strings.Replace(format, `"pacer_recording":1`, `"pacer_recording":2`, 1), `f:1: pacer_recording 2, this pacer reads version 1`},
		{"torn in the middle", lines[0] + lines[1][:50] + "\n" + lines[2], `f:2: "{\"at\":\"2026-01-01T00:00:10Z\"`},
		{"kind", strings.Replace(format, `"steps":100`, `"steps":"many"`, 1), `f:2: jobs.request.steps: string, want a float64`},
		{"time", strings.Replace(format, `"2026-01-01T00:00:10Z"`, `"0001-01-01T00:00:10Z"`, 1), `f:2: at "0001-01-01T00:00:10Z"`},
		{"no time", strings.Replace(format, `"2026-01-01T00:00:10Z"`, `"yesterday"`, 1), `f:2: parsing time`},
		{"phase", strings.Replace(format, `"held","done"`, `"idle","done"`, 1), `f:2: live: phase "idle" is none of held, releasing, released,`},
		{"mode", strings.Replace(format, `"up"`, `"on"`, 1), `f:1: live: mode "on" is none of up,`},
		{"plan", strings.Replace(format, `"plan":"dp=2,tp=1,pp=1,mb=4,ga=1","devices"`, `"plan":"dp=x","devices"`, 1), `f:2: job "j": spec: plan "dp=x"`},
		{"run plan", strings.Replace(format, `"run_plan":"dp=2,mb=4"`, `"run_plan":"dp=x"`, 1), `f:3: job "j": run_plan: spec: plan "dp=x"`},
		{"devices", strings.Replace(format, `"devices":2`, `"devices":-2`, 1), `f:2: spec: job j: -2 devices`},
		{"no devices", strings.Replace(format, `"devices":4`, `"devices":0`, 1), `f:1: type 0: spec:`},
		{"used", strings.Replace(format, `"used":1`, `"used":5`, 1), `f:1: node "n1": 5 used devices of 4`},
		{"used CPUs", strings.Replace(format, `"used_milli_cpus":500`, `"used_milli_cpus":-5`, 1), `f:1: node "n1": used_milli_cpus -5`},
		{"cancelled", strings.Replace(format, `"cancelled":["k"]`, `"cancelled":["l"]`, 1), `f:6: cancelled "l": no such job has ended`},
		{"model", strings.Replace(format, `"model":0`, `"model":1`, 1), `f:2: job "j": model 1 is not one of the 1`},
		{"type", strings.Replace(format, `"type":0`, `"type":-1`, 1), `f:1: node "n1": type -1 is not one of the 1`},
		{"duration", strings.Replace(format, `"steps":100`, `"duration_s":-1`, 1), `f:2: job "j": duration_s -1, want 0 to`},
		{"submitted", strings.Replace(format, `"2026-01-01T00:00:05Z"`, `"1026-01-01T00:00:05Z"`, 1), `f:2: job "j": submitted "1026-01-01T00:00:05Z"`},
		{"slots", strings.Replace(format, `"held":"n1=2"`, `"held":"n1=two"`, 1), `f:3: live: slots "n1=two"`},
		{"node", strings.Replace(format, `"held":"n1=2"`, `"held":"n9=2"`, 1), `f:3: job "j": held "n9=2": no node "n9"`},
		{"done", strings.Replace(format, `"done":0}]}`+"\n"+`{"at":"2026-01-01T00:00:11Z"`, `"done":-1}]}`+"\n"+`{"at":"2026-01-01T00:00:11Z"`, 1), `f:2: job "j": done -1`},
		{"ended", strings.Replace(format, `["j"]`, `["k"]`, 1), `f:4: ended "k": no such job`},
		{"request", lines[0] + lines[2], `f:2: job "j" has no id or no request`},
		{"gone", lines[0] + `{"at":"2026-01-01T00:00:10Z","nodes_gone":["n9"]}`, `f:2: nodes_gone "n9": no such node`},
		{"no nodes", `{"pacer_recording":1,"at":"2026-01-01T00:00:00Z"}`, `f: spec: the cluster has no nodes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.text == format {
				t.Fatal("the text is not changed")
			}
			_, err := recording.Read(strings.NewReader(c.text), "f", recording.Window{})
			if err == nil || !strings.HasPrefix(err.Error(), "recording: "+c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
	plain, err := recording.Read(strings.NewReader(format), "f", recording.Window{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.ReplaceAll(format, `"at":`, `"new":{"a":[1]},"at":`),
		strings.ReplaceAll(format, `"id":`, `"new":"a","id":`),
		strings.ReplaceAll(format, "\n", "\r\n\n"),
		strings.TrimRight(format, "\n"),
	} {
		got, err := recording.Read(strings.NewReader(text), "f", recording.Window{})
		if err != nil || !reflect.DeepEqual(got, plain) {
			t.Errorf("read %+v, %v, want %+v, of\n%s", got, err, plain, text)
		}
	}
}

// TestTorn: a file that ends anywhere is read up to its last whole line.
func TestTorn(t *testing.T) {
	text := recordedText(t, livetest.NewTrace(20, 3))
	first := bytes.IndexByte(text, '\n')
	rng := rand.New(rand.NewPCG(1, 1))
	jobs := 0
	for range 300 {
		cut := rng.IntN(len(text))
		r, err := recording.Read(bytes.NewReader(text[:cut]), "f", recording.Window{})
		switch {
		case cut < first && (err == nil || !strings.Contains(err.Error(), "no whole line")):
			t.Fatalf("cut at %d: %v", cut, err)
		case cut >= first && err != nil:
			t.Fatalf("cut at %d: %v", cut, err)
		case err == nil:
			if torn := text[cut-1] != '\n' && text[cut] != '\n'; (r.Torn == 1) != torn {
				t.Errorf("cut at %d: %d torn lines", cut, r.Torn)
			}
			jobs = max(jobs, len(r.Jobs))
		}
	}
	if jobs < 15 {
		t.Errorf("at most %d jobs", jobs)
	}
}

// TestNewWriter: a file with something else in it is not appended to.
func TestNewWriter(t *testing.T) {
	for text, want := range map[string]string{
		"job_id,submit_s\n":                      `"job_id,submit_s`,
		strings.Replace(format, ":1,", ":2,", 1): "pacer_recording 2, this pacer reads version 1",
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := recording.NewWriter(f, recording.Session{}, nil); err == nil || !strings.Contains(err.Error(), path+":1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("changed to %s, %v", got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRead: no file makes Read or a replay panic. Lines of a recording are dropped, doubled, swapped and cut, and their
// values replaced by those of others.
func FuzzRead(f *testing.F) {
	for seed := range uint64(1000) {
		f.Add(seed)
	}
	tr := livetest.NewTrace(12, 3)
	lines := bytes.SplitAfter(recordedText(f, tr), []byte("\n"))
	value := regexp.MustCompile(`"[^"]*"|-?[0-9.]+`)
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		text := slices.Clone(lines)
		for range 1 + rng.IntN(4) {
			i, j := rng.IntN(len(text)), rng.IntN(len(text))
			switch rng.IntN(8) {
			case 0:
				text = slices.Delete(text, i, i+1)
			case 1:
				text = slices.Insert(text, i, text[j])
			case 2:
				text[i], text[j] = text[j], text[i]
			case 3:
				text[i] = text[i][:rng.IntN(len(text[i])+1)]
			default:
				others := append(value.FindAll(text[j], -1), []byte("-1"), []byte("1e300"), []byte(`"0001-01-01T00:00:00Z"`), []byte(`"2200-01-01T00:00:00Z"`), []byte("null"))
				if at := value.FindAllIndex(text[i], -1); len(at) > 0 {
					a := at[rng.IntN(len(at))]
					text[i] = slices.Concat(text[i][:a[0]], others[rng.IntN(len(others))], text[i][a[1]:])
				}
			}
		}
		r, err := recording.Read(bytes.NewReader(bytes.Join(text, nil)), "f", recording.Window{From: time.Duration(rng.IntN(3)) * 10 * time.Minute})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "recording: f") {
				t.Errorf("error %v", err)
			}
			return
		}
		r.Notes()
		jobs := r.Requests()
		truth, err := r.Calibrate(t.Context(), tr.World.Truth(r.Cluster), jobs)
		if err != nil {
			return
		}
		r.Result(jobs)
		if _, err := sim.Run(t.Context(), sim.Config{
			Cluster: r.Cluster, Jobs: jobs, Policy: tr.Policy(t, "fifo"), PolicyName: "fifo", Truth: truth, Failures: r.Failures, Maintenance: r.Drains,
		}); err != nil && !strings.HasPrefix(err.Error(), "sim: ") {
			t.Errorf("error %v", err)
		}
	})
}

func recordedText(tb testing.TB, tr *livetest.Trace) []byte {
	tb.Helper()
	text, err := os.ReadFile(recorded(tb, tr, "srtf", nil))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
