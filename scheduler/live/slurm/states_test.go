package slurm

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// changed returns an output with other fields of one of its objects.
func changed(t *testing.T, file string, index int, fields map[string]any) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(readFile(t, file), &all); err != nil {
		t.Fatal(err)
	}
	kind, _, _ := strings.Cut(file, "-")
	var objects []map[string]any
	if err := json.Unmarshal(all[kind], &objects); err != nil {
		t.Fatal(err)
	}
	maps.Copy(objects[index], fields)
	b, err := json.Marshal(map[string]any{kind: objects})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// observed returns the state with changed nodes and jobs, nil = as recorded.
func observed(t *testing.T, c *Cluster, nodes, jobs []byte) *live.State {
	t.Helper()
	if nodes == nil {
		nodes = readFile(t, "nodes-22.05.json")
	}
	if jobs == nil {
		jobs = readFile(t, "jobs-22.05.json")
	}
	s, err := c.state(nodes, jobs, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestIncompleteOutput: an output without its list is an error. It does not say that all jobs have ended.
func TestIncompleteOutput(t *testing.T) {
	const failed = `"errors": [{"description": "Failure to query", "error_number": 1800}]`
	for _, text := range []string{"{}", `{"jobs": null}`, "{" + failed + "}", `{"jobs": [], ` + failed + "}"} {
		if s, err := reader().state(readFile(t, "nodes-22.05.json"), []byte(text), now); err == nil {
			t.Errorf("jobs %s: no error, %d jobs", text, len(s.Jobs))
		}
	}
	for _, text := range []string{"{}", `{"nodes": null}`, `{"nodes": [], ` + failed + "}"} {
		if s, err := reader().state([]byte(text), readFile(t, "jobs-22.05.json"), now); err == nil {
			t.Errorf("nodes %s: no error, %d nodes", text, len(s.Nodes))
		}
	}
	for _, text := range []string{`{"jobs": []}`, `{"jobs": [], "errors": [], "warnings": []}`, `{"jobs": [], "errors": [ ]}`} {
		if _, err := reader().state(readFile(t, "nodes-22.05.json"), []byte(text), now); err != nil {
			t.Errorf("jobs %s: %v", text, err)
		}
	}
}

// TestSeveralTypes: a node with GPUs of several types, and a job that requests them, are faults. A job of others on such GPUs
// is none.
func TestSeveralTypes(t *testing.T) {
	s := observed(t, reader(), changed(t, "nodes-22.05.json", 3, map[string]any{"gres": "gpu:a100:2(S:0),gpu:v100:2(S:1)"}), nil)
	if len(s.Nodes) != 3 || len(s.Faults) != 1 || s.Faults[0].Object != "node node4" || !strings.Contains(s.Faults[0].Err.Error(), "types a100, v100") {
		t.Errorf("%d nodes, faults %v", len(s.Nodes), s.Faults)
	}
	s = observed(t, reader(), nil, changed(t, "jobs-22.05.json", 0, map[string]any{"tres_per_node": "gres:gpu:a100:1,gres:gpu:v100:1"}))
	if len(s.Faults) != 1 || s.Faults[0].Object != "job 1" {
		t.Errorf("faults %v", s.Faults)
	}
	s = observed(t, reader(), nil, changed(t, "jobs-22.05.json", 1, map[string]any{"gres_detail": []string{"gpu:a100:1(IDX:0),gpu:v100:1(IDX:1)", "gpu:a100:2(IDX:0-1)"}}))
	if len(s.Faults) != 0 || s.Nodes[0].UsedDevices != 2 {
		t.Errorf("faults %v, nodes %+v", s.Faults, s.Nodes)
	}
}

// TestSharedGPU: a GPU with shards in use is given to no job as a whole.
func TestSharedGPU(t *testing.T) {
	for used, want := range map[string]int{
		"gpu:v100:0(IDX:N/A),shard:v100:3(2/4,1/4)": 2, "gpu:v100:0(IDX:N/A),shard:v100:1(0/4,1/4)": 1, "gpu:v100:0(IDX:N/A),shard:v100:0(0/4,0/4)": 0,
		"gpu:v100:0(IDX:N/A),shard:0": 0, "gpu:(null):0(IDX:N/A),mps:(null):50(50/100,0/100)": 1, "gpu:v100:0(IDX:N/A),shard:(null):10(0/80,10/80)": 1,
	} {
		s := observed(t, reader(), changed(t, "nodes-22.05.json", 3, map[string]any{"gres_used": used}), []byte(`{"jobs": []}`))
		if got := s.Nodes[3].UsedDevices; got != want || len(s.Faults) != 0 {
			t.Errorf("%s: %d GPUs are used, faults %v, want %d", used, got, s.Faults, want)
		}
	}
}

// TestOtherHosts: CPUs and memory of other jobs are used, on nodes with GPUs, also if they have none. What a job of pacer has
// is never counted twice.
func TestOtherHosts(t *testing.T) {
	s := observed(t, reader(), nil, nil)
	if want := (spec.Host{MilliCPUs: 1000, Bytes: 100 << 20}); s.Nodes[0].UsedHost != want || s.Nodes[1].UsedHost != want || s.Nodes[2].UsedHost != (spec.Host{}) {
		t.Errorf("nodes %+v, want %s on the first two", s.Nodes, want)
	}
	onlyCPUs := map[string]any{"gres_detail": []string{}, "tres_per_node": "", "cpus": 8}
	s = observed(t, reader(), nil, changed(t, "jobs-22.05.json", 1, onlyCPUs))
	if want := (spec.Host{MilliCPUs: 4000, Bytes: 400 << 20}); s.Nodes[0].UsedHost != want || s.Nodes[0].UsedDevices != 0 {
		t.Errorf("node %+v, want %s and no device", s.Nodes[0], want)
	}
	onlyCPUs["nodes"], onlyCPUs["job_resources"] = "node[3-4]", map[string]any{"nodes": "node[3-4]"} // a job of pacer has 2 of the 4 CPUs of each
	s = observed(t, reader(), nil, changed(t, "jobs-22.05.json", 1, onlyCPUs))
	if got := s.Nodes[2].UsedHost.MilliCPUs; got != 2000 {
		t.Errorf("%d thousandths of CPUs are used by others, want 2000", got)
	}
	onlyCPUs["job_state"] = "SUSPENDED"
	if s = observed(t, reader(), nil, changed(t, "jobs-22.05.json", 1, onlyCPUs)); s.Nodes[2].UsedHost.MilliCPUs != 0 {
		t.Errorf("node %+v of a suspended job", s.Nodes[2])
	}
	s = observed(t, reader(), changed(t, "nodes-22.05.json", 0, map[string]any{"effective_cpus": 3, "specialized_memory": 500}), nil)
	if n := s.Nodes[0].Type; n.CPUs != 3 || n.HostBytes != 3500<<20 {
		t.Errorf("node %+v, want 3 CPUs and 3500 MiB for jobs", n)
	}
}

// TestWaits: a held job that depends on others, or begins later, gets no devices yet.
func TestWaits(t *testing.T) {
	later := now.Unix() + 3600
	for _, c := range []struct {
		fields map[string]any
		want   bool
	}{
		{map[string]any{"dependency": ""}, false}, {map[string]any{"dependency": nil}, false},
		{map[string]any{"dependency": "afterok:7(unfulfilled)"}, true},
		{map[string]any{"eligible_time": later}, true}, {map[string]any{"eligible_time": now.Unix()}, false},
		{map[string]any{"eligible_time": map[string]any{"set": true, "infinite": false, "number": later}}, true},
		{map[string]any{"eligible_time": later, "restart_cnt": 1}, false},              // Slurm's own time after a requeue
		{map[string]any{"dependency": "singleton(unfulfilled)", "priority": 5}, false}, // released
	} {
		s := observed(t, reader(), nil, changed(t, "jobs-22.05.json", 0, c.fields))
		if len(s.Jobs) != 2 || s.Jobs[0].Paused != c.want {
			t.Errorf("%v: paused %v, want %v", c.fields, s.Jobs[0].Paused, c.want)
		}
	}
	s := observed(t, reader(), nil, changed(t, "jobs-22.05.json", 0, map[string]any{"dependency": "afterok:7(failed)"}))
	if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].Err.Error(), "never be satisfied") {
		t.Errorf("a dependency on a job that failed: %v", s.Faults)
	}
}

// TestJobsOfPartitions: a job that may run in several partitions is of each of them, and a task of an array is a fault.
func TestJobsOfPartitions(t *testing.T) {
	c := reader()
	c.Partitions = []string{"all"}
	for partition, want := range map[string]int{"all": 2, "cpu,all": 2, "all,cpu": 2, "al,l": 1} {
		if s := observed(t, c, nil, changed(t, "jobs-22.05.json", 0, map[string]any{"partition": partition})); len(s.Jobs) != want {
			t.Errorf("partition %s: %d jobs, want %d", partition, len(s.Jobs), want)
		}
	}
	s := observed(t, reader(), nil, changed(t, "jobs-22.05.json", 0, map[string]any{"array_job_id": 1, "array_task_string": ""}))
	if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].Err.Error(), "an array") {
		t.Errorf("faults %v of a task of an array", s.Faults)
	}
}

// TestStartKeepsGRES: a start changes the GPUs of a job and no other GRES. Variables of the user's commands hide nothing.
func TestStartKeepsGRES(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\necho \"$@\" \"$SQUEUE_STATES$SINFO_PARTITION\" >>"+dir+"/calls\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SQUEUE_STATES", "hidden")
	t.Setenv("SINFO_PARTITION", "hidden")
	c := reader()
	c.Limit = 1e10
	s := observed(t, c, nil, changed(t, "jobs-22.05.json", 0, map[string]any{"tres_per_node": "gres:gpu:1,gres/gpu=1,gres:nvme:100,gres/disk:ssd:2"}))
	if err := c.Start(t.Context(), &s.Jobs[0], live.Record{RunPlan: "dp=2", RunSlots: live.Slots{"node1": 2}}); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || !strings.Contains(string(calls), " Gres=gpu:2,nvme:100,disk:ssd:2 ") || strings.Contains(string(calls), "hidden") {
		t.Errorf("%s%v", calls, err)
	}
}
