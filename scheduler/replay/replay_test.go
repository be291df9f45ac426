package replay_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
	"github.com/pacer-ml/pacer/scheduler/replay"
)

const record = `time,name,gpu,gpus,batch_size,accum_steps,epoch,progress
60,a,x,2,128,0,0,0
60,b,,0,0,0,0,0
120,a,y,4,256,1,1,12345.6
`

func types(gpu string) (string, error) {
	if gpu == "z" {
		return "", errors.New("there is no z")
	}
	return strings.ToUpper(gpu), nil
}

func read(t *testing.T) replay.Rounds {
	t.Helper()
	r, err := replay.Read(strings.NewReader(record), "r.csv", types)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	r := read(t)
	want := replay.Row{Accelerator: "Y", Devices: 4, Batch: 256, Accum: 2, Epoch: 1, Progress: 12345.6}
	if got := r[2*time.Minute]["a"]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := r[time.Minute]["b"]; got != (replay.Row{Accum: 1}) {
		t.Errorf("who holds nothing is %+v", got)
	}
	if got := r.Jobs(); !slices.Equal(got, []spec.JobID{"a", "b"}) {
		t.Errorf("%v", got)
	}
	head, row, _ := strings.Cut(record, "\n")
	row, _, _ = strings.Cut(row, "\n")
	for text, want := range map[string]string{
		"":                                  "EOF",
		head:                                "no rounds",
		"time,name":                         "no column gpu",
		head + "\n" + row + "\n" + row:      "r.csv:3: job a has two rows at 1m0s",
		head + "\n60,a,z,2,1,0,0,0":         "r.csv:2: there is no z",
		head + "\n60,a,x,0,1,0,0,0":         `r.csv:2: gpus "0", want at least 1`,
		head + "\n60.5,a,x,1,1,0,0,0":       `r.csv:2: time "60.5"`,
		head + "\n9e12,a,x,1,1,0,0,0":       `r.csv:2: time "9e12" is above 1e+09 s`,
		head + "\nx\"y,a,x,1,1,0,0,0":       `r.csv: parse error on line 2, column`,
		head + "\n\"60,a,x,1,1,0,0,0":       `r.csv: parse error on line 2, column 18`,
		head + "\n60,a,x,1,1,0,0,much":      `r.csv:2: progress "much"`,
		head + "\n60,a,x,1,-1,0,0,0":        `r.csv:2: batch_size "-1"`,
		head + "\n60,a,x,1,1,0,0,0,surplus": "wrong number of fields",
		head + "\n60,a,x,1,1,0,0,NaN":       `progress "NaN"`,
		head + "\n60,a,x,1,1,0,Inf,0":       `epoch "Inf"`,
	} {
		if _, err := replay.Read(strings.NewReader(text), "r.csv", types); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// scales answers with what it was set to, and remembers its calls.
type scales struct {
	out   sia.Weighed
	given map[spec.JobID]sia.Given
}

func (s *scales) Decide(context.Context, *scheduler.Snapshot) (scheduler.Decision, error) {
	return scheduler.Decision{}, errors.New("the record decides")
}

func (s *scales) Weigh(_ context.Context, _ *scheduler.Snapshot, given map[spec.JobID]sia.Given) (sia.Weighed, error) {
	s.given = given
	return s.out, nil
}

// Recorded decisions apply, a job without a record keeps its devices, and each round counts once.
func TestDecide(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{
		{Count: 1, Devices: 4, Accelerator: spec.Accelerator{Name: "X"}}, {Count: 1, Devices: 4, Accelerator: spec.Accelerator{Name: "Y"}},
	}}
	w := &scales{out: sia.Weighed{Own: 1, Given: 1.5}}
	p := replay.New(read(t), w)
	decide := func(now time.Duration) {
		t.Helper()
		late := &scheduler.JobState{Job: &spec.Job{ID: "late"}, Grant: &scheduler.Grant{Job: "late", Slots: []scheduler.Slot{{Node: 0, Devices: 1}}}}
		jobs := []*scheduler.JobState{{Job: &spec.Job{ID: "a"}}, {Job: &spec.Job{ID: "b"}}, late}
		if _, err := p.Decide(t.Context(), scheduler.NewSnapshot(now, c, jobs)); err != nil {
			t.Fatal(err)
		}
	}
	decide(time.Minute)
	decide(time.Minute)
	if want := map[spec.JobID]sia.Given{"a": {Group: 0, Devices: 2}, "late": {Group: 0, Devices: 1}}; !maps.Equal(w.given, want) {
		t.Errorf("given %v, want %v", w.given, want)
	}
	w.out = sia.Weighed{Own: 1, Given: 0.9}
	decide(2 * time.Minute)
	if w.given["a"] != (sia.Given{Group: 1, Devices: 4}) {
		t.Errorf("given %v", w.given)
	}
	decide(3 * time.Minute) // not in the record
	want := replay.Report{Recorded: 2, Rounds: 2, Better: 1, Gap: 0.5, WideGaps: 1, WidestGap: 0.5, Differences: []string{
		"at 1m0s: the recorded decision costs 1.5, that of the policy 1", "at 2m0s: the recorded decision costs 0.9, that of the policy 1"}}
	if diff := cmp.Diff(want, p.Report()); diff != "" {
		t.Error(diff)
	}

	p = replay.New(read(t), w)
	w.out = sia.Weighed{Own: 1, Given: 1, Impossible: "no room"}
	decide(time.Minute)
	if r := p.Report(); r.Impossible != 1 || r.Better+r.WideGaps != 0 {
		t.Errorf("%+v", r)
	}
	c.Groups = c.Groups[:1]
	if _, err := p.Decide(t.Context(), scheduler.NewSnapshot(2*time.Minute, c, []*scheduler.JobState{{Job: &spec.Job{ID: "a"}}})); err == nil {
		t.Error("a type that the cluster does not have was taken")
	}
}

// Six digits are compared, and the first difference of each kind is kept.
func TestWatch(t *testing.T) {
	p := replay.New(read(t), &scales{})
	p.Watch(time.Minute, "a", goodput.AgentState{Batch: 128, Accum: 1})
	p.Watch(time.Minute, "b", goodput.AgentState{Batch: 7}) // holds nothing in the record
	p.Watch(2*time.Minute, "a", goodput.AgentState{Batch: 256, Accum: 2, Epoch: 1, Progress: 12345.649})
	if r := p.Report(); r.JobRounds != 2 || r.Batches != 2 || r.Progress != 2 || r.Differences != nil {
		t.Errorf("%+v", r)
	}
	p.Watch(2*time.Minute, "a", goodput.AgentState{Batch: 256, Accum: 1, Epoch: 1, Progress: 12345.66})
	p.Watch(2*time.Minute, "a", goodput.AgentState{Batch: 64, Accum: 2, Epoch: 2, Progress: 12345.6})
	r := p.Report()
	if r.JobRounds != 4 || r.Batches != 2 || r.Progress != 2 || len(r.Differences) != 2 {
		t.Errorf("%+v", r)
	}
}
