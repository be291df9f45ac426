package trace

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func mustPlan(t *testing.T, s string) spec.Plan {
	t.Helper()
	p, err := spec.ParsePlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadJobCSV(t *testing.T) {
	w, err := readText([]byte("\ufeffjob_id,submit_s,gpus,duration_s,model,plan,tenant,steps,weight,deadline_s,guaranteed,color\r\n"+
		"b,7.5,8,100,llama-3-8b,\"dp=2,tp=4,pp=1,mb=2,ga=8\",red,20,2.5,500,1,x\r\n"+
		"a,0,1,3600,,,,,,,,\r\n"+
		"c,7.5,2,,bert,,,10,,,false,\r\n"), "jobs.csv", "")
	if err != nil || len(w.Bad) != 0 || w.Format != "csv" {
		t.Fatalf("%+v, %v", w, err)
	}
	want := []spec.Job{
		{ID: "a", Devices: 1, Duration: time.Hour},
		{ID: "b", Submit: 7500 * time.Millisecond, Model: jobModel("Llama3-8B"), Plan: mustPlan(t, "dp=2,tp=4,pp=1,mb=2,ga=8"), Devices: 8,
			Steps: 20, Duration: 100 * time.Second, Tenant: "red", Weight: 2.5, Deadline: 500 * time.Second, Guaranteed: true},
		{ID: "c", Submit: 7500 * time.Millisecond, Model: jobModel("bert"), Devices: 2, Steps: 10},
	}
	if d := cmp.Diff(want, w.Jobs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if w.Jobs[1].Model.Layers != 32 || w.Jobs[2].Model.ParamCount != 336_297_858 {
		t.Errorf("shapes: %+v, %+v", w.Jobs[1].Model, w.Jobs[2].Model)
	}
	if len(w.Warnings) != 2 || w.Warnings[0].Error() != `datasets: jobs.csv: column "color" is not read` ||
		w.Warnings[1].Error() != "datasets: jobs.csv: jobs out of order: 1, first a 7.5s before b; all are sorted by submission" {
		t.Errorf("warnings %v", w.Warnings)
	}
}

func TestReadJobCSVBadRows(t *testing.T) {
	w, err := readText([]byte("job_id,submit_s,gpus,duration_s,plan,steps,guaranteed\n"+
		"a,0,1,10,,-5,\n"+
		"b,x,1,10,,,\n"+
		"c,0,0,10,,,\n"+
		"d,0,1,10,\"dp=2\",,\n"+
		"e,0,1,10,warp,,\n"+
		"f,0,1,10,,,\n"+
		"f,1,1,10,,,\n"+
		"g,0,1,,,,\n"+
		"h,0,1,10,,,maybe\n"+
		",0,1,10,,,\n"+
		"i,-3,1,10,,,\n"+
		"j,0,1.5,10,,,\n"+
		"k,0,1\n"+
		"l,0,1,1e300,,,\n"), "jobs.csv", "csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`jobs.csv:2: steps "-5": is negative`,
		`jobs.csv:3: submit_s "x": is not a finite number`,
		`jobs.csv:4: gpus "0": is not a number of devices in 1..1048576`,
		`jobs.csv:5: plan "dp=2": is for 2 devices, the job asks for 1`,
		`jobs.csv:6: plan "warp": spec: plan "warp": "warp" is not key=value`,
		`jobs.csv:8: job_id "f": is also the id of line 7`,
		`jobs.csv:9: spec: job g has neither steps nor a duration`,
		`jobs.csv:10: guaranteed "maybe": is not 0 or 1`,
		`jobs.csv:11: job_id "": is missing`,
		`jobs.csv:12: submit_s "-3": is negative`,
		`jobs.csv:13: gpus "1.5": is not a whole number in 0..1073741824`,
		`jobs.csv:14: has 3 cells, the header 7`,
		`jobs.csv:15: duration_s "1e300": is more than a hundred years`,
	}
	var got []string
	for _, e := range w.Bad {
		got = append(got, strings.TrimPrefix(e.Error(), "datasets: "))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(w.Jobs) != 1 || w.Jobs[0].ID != "f" {
		t.Errorf("jobs %+v, want f alone", w.Jobs)
	}
}

func TestReadRubickWorkload(t *testing.T) {
	w, err := readText([]byte("name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n"+
		"gpt2-0,30,12.5,gpt2,2,16,0,zero-offload,40,1\n"+
		"llama30-1,5,100,llama30,48,384,1.25,344,64,0\n"+
		"gpt2-2,30,12.5,gpt2,3,16,0,251,40,1\n"+
		"warp-3,30,12.5,warp,3,16,0,ga,40,1\n"), "w.csv", "")
	if err != nil || w.Format != "rubick" || len(w.Warnings) != 1 {
		t.Fatalf("%+v, %v", w, err)
	}
	gpt2, _, _ := datasets.RubickModel("gpt2")
	llama, _, _ := datasets.RubickModel("llama30")
	want := []spec.Job{
		{ID: "llama30-1", Submit: 5 * time.Second, Model: llama, GlobalBatch: 4, Devices: 48, Steps: 64, Duration: 100 * time.Second,
			Plan: mustPlan(t, "dp=4,tp=4,pp=3,mb=1,ga=1,precision=tf32")},
		{ID: "gpt2-0", Submit: 30 * time.Second, Model: gpt2, GlobalBatch: 16, Devices: 2, Steps: 40, Duration: 12500 * time.Millisecond,
			Plan: mustPlan(t, "dp=2,mb=8,zero=2,offload=optimizer,precision=tf32"), Guaranteed: true},
	}
	if d := cmp.Diff(want, w.Jobs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(w.Bad) != 2 || !strings.Contains(w.Bad[0].Error(), `w.csv:4: exec_plan "251"`) || !strings.Contains(w.Bad[1].Error(), `w.csv:5: application "warp"`) {
		t.Errorf("faults %v", w.Bad)
	}
}

func TestReadGavelWorkload(t *testing.T) {
	w, err := readText([]byte("job_id,arrival_s,job_type,scale_factor,total_steps,duration_on_v100_s,priority_weight\n"+
		"0,0.0,ResNet-18 (batch size 64),8,1000.5,60,1.0\n1,3,A3C,1,-4,,1\n"), "g.csv", "")
	if err != nil || w.Format != "gavel" || len(w.Jobs) != 1 || len(w.Bad) != 1 || len(w.Warnings) != 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	j := w.Jobs[0]
	if j.Steps != 1000.5/8 || j.Duration != time.Minute || j.Plan != datasets.GavelConfig("ResNet-18 (batch size 64)", 8).Plan ||
		j.Plan.GlobalBatch() != 512 || j.Weight != 1 || j.Model.Name != "ResNet-18 (batch size 64)" {
		t.Errorf("%+v", j)
	}
}

func TestReadGavelTrace(t *testing.T) {
	const trace = "LM (batch size 5)\tpython3 main.py\tlm\t--steps\t1\t800\t4\t2\t-1.000000\t60\n" +
		"A3C\tcmd\t-n\t1\t50\t6.5\t1\n" +
		"A3C\tcmd\n" +
		"A3C\tcmd\trl\t-n\t1\t50\t1\t1\t1.2\t0\n"
	w, err := readText([]byte(trace), "t.trace", "")
	if err != nil || w.Format != "gavel-trace" {
		t.Fatalf("%+v, %v", w, err)
	}
	if len(w.Jobs) != 2 || w.Jobs[0].ID != "1" || w.Jobs[0].Submit != 6500*time.Millisecond || w.Jobs[0].Steps != 50 ||
		w.Jobs[1].ID != "0" || w.Jobs[1].Steps != 200 || w.Jobs[1].Weight != 2 || w.Jobs[1].Plan.MicroBatch != 5 {
		t.Errorf("%+v", w.Jobs)
	}
	if len(w.Bad) != 2 || !strings.Contains(w.Bad[0].Error(), "t.trace:3: has 2") || !strings.Contains(w.Bad[1].Error(), `t.trace:4: SLO "1.2"`) {
		t.Errorf("faults %v", w.Bad)
	}
}

func TestWorkloadFormats(t *testing.T) {
	for _, c := range []struct{ data, format, want string }{
		{"a,b\n", "dl2", "config"},
		{"config,trace,job,arrival_slot,type,model,epochs\nsmall,0,1,0,1,resnet-50,3\nsmall,1,1,0,1,resnet-50,3\n", "", "holds several traces, small/0 and small/1 among them: name one, as FILE:dl2=small/0"},
		{"config,trace,job,arrival_slot,type,model,epochs\nsmall,0,1,0,1,resnet-50,3\n", "dl2=small/1", "holds no trace small/1, there are: small/0"},
		{"a,b\n", "csv=part", "a file of format csv holds one trace"},
		{"a,b\n", "sia", "x: no column name, time, application"},
		{"a,b\n", "pai2020", "x: a trace of format pai2020 is a directory of tables"},
		{"{}", "philly", "x: is no JSON array"},
		{"a,b\n", "rubik", `unknown workload format "rubik", want one of: rubick`},
		{"a,b\n", "", "x: its first line is of no known workload format; name one of: csv, rubick"},
		{"", "", "x: the file is empty"},
		{" \n\n", "csv", "x: the file is empty"},
		{"", "gavel-trace", "x: the file is empty"},
		{"job_id,gpus\n", "csv", "x: no column submit_s, the header is job_id,gpus"},
		{"job_id,submit_s,gpus,gpus\n", "csv", `column "gpus" twice`},
	} {
		w, err := readText([]byte(c.data), "x", c.format)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q as %q: %+v, %v, want an error with %q", c.data, c.format, w, err, c.want)
		}
	}
}

// The published traces have no invalid rows, and every job of Rubick's has a plan
// for its devices and the model's batch.
func TestWorkloadsPublished(t *testing.T) {
	shared := spectest.Shared(t)
	counts := map[string]int{
		"data/rubick/simulator/workloads/workload-base.csv":          406,
		"data/rubick/simulator/workloads/workload-bp.csv":            406,
		"data/rubick/simulator/workloads/workload-mt.csv":            406,
		"data/rubick/simulator/workloads/naive.csv":                  10,
		"baselines/gavel/inputs/static100_multi_seed0.csv":           100,
		"baselines/gavel/inputs/trace_max_min_fairness.trace.csv":    96,
		"baselines/gavel/inputs/trace_minimize_makespan.trace.csv":   100,
		"data/gavel/traces/physical_cluster/max_min_fairness.trace":  96,
		"data/gavel/traces/physical_cluster/minimize_makespan.trace": 100,
	}
	for name, want := range counts {
		w := readShared(t, filepath.Join(shared, name))
		if len(w.Jobs) != want || len(w.Bad) != 0 || len(w.Warnings) != 0 {
			t.Errorf("%s: %d jobs, faults %v, warnings %v, want %d and none", name, len(w.Jobs), w.Bad, w.Warnings, want)
		}
		guaranteed := 0
		for _, j := range w.Jobs {
			if j.Guaranteed {
				guaranteed++
			}
			if w.Format == "rubick" && (j.Plan.Devices() != j.Devices || j.Plan.GlobalBatch() != j.GlobalBatch) {
				t.Errorf("%s: %s: plan %s for %d devices and batch %d", name, j.ID, j.Plan, j.Devices, j.GlobalBatch)
			}
		}
		if mt := strings.HasSuffix(name, "workload-mt.csv"); mt && guaranteed != 194 || !mt && guaranteed != 0 {
			t.Errorf("%s: %d guaranteed jobs", name, guaranteed)
		}
	}
	old, err := filepath.Glob(filepath.Join(shared, "data/gavel/traces/msr_seed0/*.trace"))
	if err != nil || len(old) == 0 {
		t.Fatal(old, err)
	}
	jobs := 0
	for _, f := range old {
		w := readShared(t, f)
		jobs += len(w.Jobs)
		if len(w.Bad) != 0 {
			t.Errorf("%s: %v", f, w.Bad[0])
		}
	}
	if jobs != 15264 {
		t.Errorf("%d jobs in the older traces, want 15264", jobs)
	}
	// the same trace in both of Gavel's formats
	a := readShared(t, filepath.Join(shared, "baselines/gavel/inputs/trace_max_min_fairness.trace.csv"))
	b := readShared(t, filepath.Join(shared, "data/gavel/traces/physical_cluster/max_min_fairness.trace"))
	if d := cmp.Diff(a.Jobs, b.Jobs); d != "" {
		t.Errorf("the CSV and the trace differ (-csv +trace):\n%s", d)
	}
}

func readShared(t *testing.T, file string) Workload {
	t.Helper()
	w, err := Open(t.Context(), file, "")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func FuzzWorkload(f *testing.F) {
	f.Add("csv", "job_id,submit_s,gpus,duration_s,plan\na,0,2,5,\"dp=2\"\n")
	f.Add("rubick", "name,submission_time,application,num_gpus,exec_plan,steps\nx,0,bert,4,ga,5\n")
	f.Add("gavel", "job_id,arrival_s,job_type,scale_factor,total_steps\n0,0,LM (batch size 5),2,100\n")
	f.Add("gavel-trace", "A3C\tcmd\t-n\t1\t50\t6.5\t1\n")
	f.Add("", "job_id,submit_s,gpus\n\"\n,,\n")
	f.Fuzz(func(t *testing.T, format, data string) {
		if w, err := readText([]byte(data), "f", format); err == nil {
			checkFuzzed(t, w)
		}
	})
}

// Every column is read, whatever its quoting and the fraction of its value.
func TestJobCSVColumns(t *testing.T) {
	want := []spec.Job{
		{ID: "a,1", Devices: 4, Duration: 90*time.Minute + 5*time.Millisecond, Model: jobModel("Llama3-8B"), Plan: mustPlan(t, "dp=4,mb=2,ga=3,zero=2")},
		{ID: "b", Submit: 1500 * time.Millisecond, Devices: 1, Steps: 12.5, Tenant: `re"d`, Weight: 0.1, Deadline: time.Hour, Guaranteed: true,
			Host: spec.Host{MilliCPUs: 2501, Bytes: 3<<29 + 7}},
	}
	w, err := readText([]byte("job_id,submit_s,gpus,duration_s,model,plan,tenant,steps,weight,deadline_s,guaranteed,cpus_per_gpu,host_gib_per_gpu\n"+
		`"a,1",0,4,5400.005,Llama3-8B,"dp=4,tp=1,pp=1,mb=2,ga=3,zero=2",,,,,,,`+"\n"+
		`b,1.5,1,,,,"re""d",12.5,0.1,3600,1,2.501,1.5000000065192580`+"\n"), "w.csv", "")
	if err != nil || len(w.Bad) != 0 || len(w.Warnings) != 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	if d := cmp.Diff(want, w.Jobs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
