package trace

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// checkWorkload compares a workload with the expected jobs, errors and warnings;
// texts are without "datasets: ".
func checkWorkload(t *testing.T, w Workload, err error, format string, jobs []spec.Job, bad, warnings []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if w.Format != format {
		t.Errorf("format %s, want %s", w.Format, format)
	}
	if d := cmp.Diff(jobs, w.Jobs); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(bad, texts(w.Bad)); d != "" {
		t.Errorf("bad rows (-want +got):\n%s", d)
	}
	if d := cmp.Diff(warnings, texts(w.Warnings)); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func texts(errs []error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, strings.TrimPrefix(e.Error(), "datasets: "))
	}
	return out
}

// An invented cut in the schema of cluster_job_log.
const phillyCut = `[
{"status": "Pass", "vc": "ee9e8c", "jobid": "a1", "user": "u1", "submitted_time": "2017-10-07 01:11:39", "attempts": [
  {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
  {"start_time": "None", "end_time": "2017-10-07 01:14:00", "detail": []},
  {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 02:14:00", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]},
{"status": "Killed", "vc": "b", "jobid": "a2", "user": "u2", "submitted_time": "2017-10-07 01:00:00", "attempts": [
  {"start_time": "2017-10-07 01:00:10", "end_time": "2017-10-07 01:00:40", "detail": [{"ip": "m1", "gpus": ["gpu7"]}]}]},
{"status": "Killed", "vc": "b", "jobid": "a3", "user": "u2", "submitted_time": "2017-10-07 01:00:00", "attempts": []},
{"status": "Killed", "vc": "b", "jobid": "a4", "user": "u2", "submitted_time": "2017-10-07 01:00:00", "attempts": [
  {"start_time": "2017-10-07 01:00:10", "end_time": null, "detail": [{"ip": "m1", "gpus": ["gpu7"]}]}]},
{"status": "Pass", "vc": "b", "jobid": "a5", "submitted_time": null, "attempts": []},
{"status": "Pass", "vc": "b", "jobid": "a1", "submitted_time": "2017-10-07 05:00:00", "attempts": [
  {"start_time": "2017-10-07 05:00:10", "end_time": "2017-10-07 05:00:40", "detail": [{"ip": "m1", "gpus": ["gpu7"]}]}]},
{"status": "Pass", "vc": 7, "jobid": "a6"},
"odd",
{"jobid": "a7", "submitted_time": "7 October", "attempts": []},
{"jobid": "a8", "submitted_time": "2017-10-07 05:00:00", "attempts": [
  {"start_time": "2017-10-07 05:00:10", "end_time": "2017-10-07 05:00:00", "detail": []}]},
{"jobid": "a9", "submitted_time": "2017-10-07 05:00:00", "attempts": [
  {"start_time": "2017-10-07 05:00:10", "end_time": "2017-10-07 05:00:20", "detail": []}]},
{"submitted_time": "2017-10-07 05:00:00"},
{"jobid": "b1", "submitted_time": "1817-10-07 05:00:00"},
{"jobid": "b2", "submitted_time": "2017-10-07 05:00:00", "attempts": [
  {"start_time": "2017-10-07 05:00:10", "end_time": "2017-10-07 05:00:10", "detail": [{"gpus": ["g"]}]}]},
{"jobid": "b3", "submitted_time": "2017-10-07 06:00:00", "attempts": []}
]
`

var phillyCutJobs = []spec.Job{
	{ID: "a2", Devices: 1, Duration: 30 * time.Second, Tenant: "b"},
	{ID: "a1", Submit: 11*time.Minute + 39*time.Second, Devices: 3, Duration: 61 * time.Minute, Tenant: "ee9e8c"},
}

func TestPhilly(t *testing.T) {
	w, err := readText([]byte(phillyCut), "log", "")
	checkWorkload(t, w, err, "philly", phillyCutJobs, []string{
		`log:11: submitted_time "": is missing`,
		`log:13: jobid "a1": is also the id of line 5`,
		`log:14: vc "number": is not a string`,
		`log:15: entry "string": is not a struct`,
		`log:16: submitted_time "7 October": is no date like 2017-10-07 01:12:09`,
		`log:18: end_time "2017-10-07 05:00:00": is before start_time 2017-10-07 05:00:10`,
		`log:21: jobid "": is missing`,
		`log:22: submitted_time "1817-10-07 05:00:00": is not between 1970 and 2169`,
	}, []string{
		"log:8: was never started (so do 1 further rows)",
		"log:10: still ran when the log ended",
		"log:20: asks for no devices",
		"log:24: ran for no time",
		"log: jobs out of order: 1, first a2 11m39s before a1; all are sorted by submission",
	})
	if want := time.Date(2017, 10, 7, 1, 0, 0, 0, time.UTC); !w.Began.Equal(want) {
		t.Errorf("began %v, want %v", w.Began, want)
	}
}

func TestPhillyBroken(t *testing.T) {
	for data, want := range map[string]string{
		`{"jobid": "a"}`:       "log: is no JSON array",
		"":                     "log: is no JSON array",
		"[{\"jobid\": \"a\"}":  "log: the array does not end",
		"[{\"jobid\": \"a\"},": "log:1: EOF",
		"[\n\n{]":              "log:3: invalid character",
		"[1 2]":                "log:1: expected comma after array element",
		`["` + strings.Repeat("x", table.MaxLine+2*peeked) + `"]`: "is longer than 16 MiB",
	} {
		if w, err := readText([]byte(data), "log", "philly"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %+v, %v, want an error with %q", data, w, err, want)
		}
	}
}

func TestPhillyCSV(t *testing.T) {
	w, err := readText([]byte("timestamp,duration,num_gpus,gpu_time,cluster\n"+
		"2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"+
		"2017-10-09 07:01:50,10.5,16,168,b436b2\n"+
		"2017-10-09 07:01:50,0,16,0,b436b2\n"+
		"then,1,1,1,b\n"+
		"2017-10-09 07:01:50,-5,16,168,b436b2\n"), "p.csv", "")
	checkWorkload(t, w, err, "philly-csv", []spec.Job{
		{ID: "line-3", Devices: 16, Duration: 10500 * time.Millisecond, Tenant: "b436b2"},
		{ID: "line-2", Submit: 5 * time.Second, Devices: 1, Duration: 66 * time.Second, Tenant: "11cb48"},
	}, []string{
		`p.csv:5: timestamp "then": is no date like 2017-10-07 01:12:09`,
		`p.csv:6: duration "-5": is negative`,
	}, []string{
		"p.csv:4: ran for no time",
		"p.csv: jobs out of order: 1, first line-3 5s before line-2; all are sorted by submission",
	})
}

// The first three rows are the example of the trace's README.
func TestHelios(t *testing.T) {
	w, err := readText([]byte("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"+
		"1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"+
		"1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"+
		"1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"+
		"1425514,uzqls,vcpDC,0,1,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"+
		"1425515,uzqls,vcpDC,0,1,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"+
		"1425516,uzqls,vcpDC,2,1,1,CANCELLED,2020-06-09 18:41:28,None,None,None,0\n"+
		"1425517,uzqls,vcpDC,2.5,1,1,CANCELLED,2020-06-09 18:41:28,,,5,0\n"+
		"1425518,uzqls,vcpDC,,1,1,CANCELLED,2020-06-09 18:41:28,,,5,0\n"+
		"1425519,uzqls,vcpDC,1,1,1,CANCELLED,,,,5,0\n"), "cluster_log.csv", "")
	checkWorkload(t, w, err, "helios", []spec.Job{
		{ID: "1425511", Devices: 1, Duration: 36848 * time.Second, Tenant: "vcJkd"},
		{ID: "1425512", Submit: 26 * time.Second, Devices: 4, Duration: 249 * time.Second, Tenant: "vchbv"},
		{ID: "1425513", Submit: 27 * time.Second, Devices: 1, Duration: 675233 * time.Second, Tenant: "vcpDC"},
	}, []string{
		`cluster_log.csv:8: gpu_num "2.5": is not a whole number in 0..1073741824`,
		`cluster_log.csv:9: gpu_num "": is missing`,
		`cluster_log.csv:10: submit_time "": is missing`,
	}, []string{
		"cluster_log.csv:5: asks for no devices (so do 1 further rows)",
		"cluster_log.csv:7: has no start, or no end",
	})
}

// Rows of both clusters are the examples of the trace's README, where Kalos
// counts the queue in its durations.
func TestAcme(t *testing.T) {
	w, err := readText([]byte("job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"+
		"5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n"+
		"5778433,u5907,1,0,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n"+
		"5778434,u5907,1,8,128,Other,FAILED,2023-02-28 16:18:23+00:00,,,17,32,136.0\n"+
		"5778435,u5907,1,8,128,Other,CANCELLED,2023-02-28 16:18:23+00:00,,,,,\n"+
		"5778436,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:18:51+08:00,117,32,936.0\n"), "trace_seren.csv", "")
	checkWorkload(t, w, err, "acme", []spec.Job{
		{ID: "5778432", Devices: 8, Duration: 117 * time.Second, Tenant: "u5907"},
		{ID: "5778434", Submit: time.Second, Devices: 8, Duration: 17 * time.Second, Tenant: "u5907"},
	}, []string{
		`trace_seren.csv:6: end_time "2023-03-01 00:18:51+08:00": is before start_time 2023-03-01 00:18:54+08:00`,
	}, []string{
		"trace_seren.csv:3: asks for no devices",
		"trace_seren.csv:5: has no start, or no end",
	})
	if want := time.Date(2023, 2, 28, 16, 18, 22, 0, time.UTC); !w.Began.Equal(want) {
		t.Errorf("began %v, want %v", w.Began, want)
	}
	w, err = readText([]byte("job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"+
		"dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"), "trace_kalos.csv", "")
	checkWorkload(t, w, err, "acme", []spec.Job{{ID: "dlctk696s0jbvitv", Devices: 64, Duration: 8 * time.Second, Tenant: "uf794"}}, nil, nil)
}

func TestAlibabaSpot(t *testing.T) {
	w, err := readText([]byte("job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"+
		"239255,13,A10,20,1,1,0,2764799,HP\n"+
		"437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot\n"+
		"437261,57,T4,15,0.5,3,9589664,10,Spot\n"+
		"437262,57,T4,15,0.5,2,9589665,10,Spot\n"+
		"437263,57,T4,15,1,1,9589665,10,Reserved\n"+
		"437264,57,T4,15,0,1,9589665,10,HP\n"+
		"437265,57,T4,15,1e9,16,9589665,10,HP\n"), "job_info_df.csv", "")
	checkWorkload(t, w, err, "alibaba-spot", []spec.Job{
		{ID: "239255", Devices: 1, Accelerator: "A10", Duration: 2764799 * time.Second, Tenant: "13", Guaranteed: true},
		{ID: "437260", Submit: 9589663 * time.Second, Devices: 16, Accelerator: "A100-80GB-SXM", Duration: 41060 * time.Second, Tenant: "57"},
		{ID: "437261", Submit: 9589664 * time.Second, Devices: 2, Accelerator: "T4", Duration: 10 * time.Second, Tenant: "57"},
		{ID: "437262", Submit: 9589665 * time.Second, Devices: 1, Accelerator: "T4", Duration: 10 * time.Second, Tenant: "57"},
	}, []string{
		`job_info_df.csv:6: job_type "Reserved": is neither HP nor Spot`,
		`job_info_df.csv:8: gpu_request "1.6e+10": in all is not a number of devices in 0..1048576`,
	}, []string{
		"job_info_df.csv:4: asks for a fraction of a device, counted as a whole one",
		"job_info_df.csv:7: asks for no devices",
	})
}

func TestTiresias(t *testing.T) {
	w, err := readText([]byte("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"+
		"0,1,0,606,vgg19,164,30\n1,8,30,133,nothing-known,147,23\n2,0,53,1,vgg19,1,1\n"), "60_job.csv", "")
	checkWorkload(t, w, err, "tiresias", []spec.Job{
		{ID: "0", Model: jobModel("vgg19"), Devices: 1, Steps: 606, Duration: 164 * time.Second},
		{ID: "1", Submit: 30 * time.Second, Model: spec.Model{Name: "nothing-known", Kind: spec.Opaque}, Devices: 8, Steps: 133, Duration: 147 * time.Second},
	}, []string{`60_job.csv:4: num_gpu "0": is not a number of devices in 1..1048576`}, nil)
}

func TestPolluxWorkload(t *testing.T) {
	const head = "name,time,application,num_replicas,batch_size"
	rows := "\ncifar10-0,53,cifar10,6,2048\ngpt-1,54.5,gpt_pmp,8,48\nx,55,resnet,1,8\ny,56,bert,0,8\nz,57,bert,1,0\ncifar10-0,58,cifar10,6,2048\n"
	cifar, _ := datasets.SiaModel("cifar10")
	first := spec.Job{ID: "cifar10-0", Submit: 53 * time.Second, Model: cifar, GlobalBatch: 2048, Devices: 6, Epochs: 100}
	bad := []string{
		`w.csv:4: application "resnet": is not one of the artifact's`,
		`w.csv:5: num_replicas "0": is not a number of devices in 1..1048576`,
		`w.csv:6: batch_size "0": is missing or 0`,
		`w.csv:7: name "cifar10-0": is also the id of line 2`,
	}
	w, err := readText([]byte(head+rows), "w.csv", "")
	checkWorkload(t, w, err, "pollux", []spec.Job{first},
		append([]string{`w.csv:3: application "gpt_pmp": is not one of the artifact's`}, bad...), nil)
	w, err = readText([]byte(head+rows), "w.csv", "sia")
	checkWorkload(t, w, err, "sia", []spec.Job{first,
		{ID: "gpt-1", Submit: 54500 * time.Millisecond, Model: spec.Model{Name: "gpt_pmp", Kind: spec.Opaque}, GlobalBatch: 48, Devices: 8, Epochs: 2},
	}, bad, nil)
	w, err = readText([]byte(head+",category\ncifar10-0,53,cifar10,6,2048,rigid\n"), "w.csv", "sia")
	checkWorkload(t, w, err, "sia", []spec.Job{first}, nil, []string{`w.csv: column "category" is not read`})
}

func TestBloxWorkload(t *testing.T) {
	w, err := readText([]byte("job_id,submit_s,gpus,duration_s\n"+
		"0,116,1,35424.3471980879\n1,352,4,4578.5\n1,353,1,9\n5,351,1,9\n0,400,1,9\n7,400,1,0\n8.5,400,1,5\n9,-4,1,5\n10,400,2,5\n"), "C_jobs.csv", "blox")
	checkWorkload(t, w, err, "blox", []spec.Job{
		{ID: "0", Submit: 116 * time.Second, Devices: 1, Duration: 35424347198088},
		{ID: "1", Submit: 352 * time.Second, Devices: 4, Duration: 4578500 * time.Millisecond},
		{ID: "10", Submit: 400 * time.Second, Devices: 2, Duration: 5 * time.Second},
	}, []string{
		`C_jobs.csv:4: job_id "1": is also the id of line 3`,
		`C_jobs.csv:5: submit_s "351": is before job 1, which has a lower number`,
		`C_jobs.csv:6: job_id "0": follows job 1, want numbers in ascending order`,
		`C_jobs.csv:7: duration_s "0": is missing or 0`,
		`C_jobs.csv:8: job_id "8.5": is not a whole number in 0..1073741824`,
		`C_jobs.csv:9: submit_s "-4": is negative`,
	}, nil)
}

const paiTaskCut = "a,worker,2.0,Terminated,130.0,190.0,600.0,29.3,150.0,V100\n" +
	"a,ps,1.0,Terminated,100.0,290.0,600.0,29.3,,\n" +
	"a,worker2,1.0,Terminated,140.0,200.0,600.0,29.3,100.0,V100\n" +
	"b,worker,10.0,Terminated,,,600.0,29.3,9.0,MISC\n" +
	"c,ps,1.0,Terminated,100.0,290.0,600.0,29.3,0.0,\n" +
	"d,worker,1.0,Terminated,100.0,90.0,600.0,29.3,100.0,T4\n" +
	"e,worker,1.0,Running,100.0,,600.0,29.3,100.0,T4\n" +
	"e,worker,1.0,Running,100.0,,600.0,29.3,125.0,P100\n"

const paiJobCut = "a,i1,u1,Terminated,90.0,300.0\n" +
	"b,i2,u2,Terminated,80.0,95.0\n" +
	"c,i3,u2,Terminated,100.0,300.0\n" +
	"d,i4,u2,Failed,100.0,300.0\n" +
	"e,i5,u2,Running,100.0,\n" +
	"f,i6,u2,Failed,100.0,300.0\n" +
	"a,i1,u1,Terminated,90.0,300.0\n" +
	"g,i1,u1\n"

var (
	paiCutJobs = []spec.Job{
		{ID: "b", Devices: 1, Duration: 15 * time.Second, Tenant: "u2"},
		{ID: "a", Submit: 10 * time.Second, Devices: 4, Accelerator: "V100-SXM2-16GB", Duration: 70 * time.Second, Tenant: "u1"},
	}
	paiCutBad = []string{
		`pai_task_table.csv:6: end_time "90.0": is before start_time 100.0`,
		`pai_job_table.csv:7: job_name "a": is also the id of line 1`,
		`pai_job_table.csv:8: has 3 cells, the header 6`,
	}
	paiCutWarnings = []string{
		"pai_job_table.csv:2: asks for a fraction of a device, counted as a whole one",
		"pai_job_table.csv:3: asks for no devices",
		"pai_job_table.csv:4: has a task that cannot be read",
		"pai_job_table.csv:5: has no start, or no end",
		"pai_job_table.csv:6: has no task",
	}
)

func TestPAI2020(t *testing.T) {
	plain := fstest.MapFS{
		"t/pai_task_table.csv": {Data: []byte(paiTaskCut)},
		"t/pai_job_table.csv":  {Data: []byte(paiJobCut)},
	}
	packed := fstest.MapFS{
		"t/data/pai_task_table.tar.gz": {Data: gzipped(t, tarred(t, "readme.txt", "no table", "pai_task_table.csv", paiTaskCut))},
		"t/data/pai_job_table.csv.gz":  {Data: gzipped(t, paiJobCut)},
	}
	headed := fstest.MapFS{
		"t/pai_task_table.csv": {Data: []byte(strings.Join(paiTaskColumns, ",") + "\n" + paiTaskCut)},
		"t/pai_job_table.csv":  {Data: []byte(paiJobCut)},
	}
	warnings := append(slices.Clone(paiCutWarnings), "t: jobs out of order: 1, first b 10s before a; all are sorted by submission")
	sameNames := strings.NewReplacer("t/data/", "", "t/", "", ".tar.gz", ".csv", ".csv.gz", ".csv", "task_table.csv:7", "task_table.csv:6")
	for name, root := range map[string]fstest.MapFS{"plain": plain, "packed": packed, "headed": headed} {
		w, err := openMap(root, "t", "")
		for _, errs := range [][]error{w.Bad, w.Warnings} {
			for i, e := range errs {
				errs[i] = errors.New(sameNames.Replace(e.Error()))
			}
		}
		t.Log(name)
		checkWorkload(t, w, err, "pai2020", paiCutJobs, paiCutBad, warnings)
	}
	delete(plain, "t/pai_task_table.csv")
	if w, err := openMap(plain, "t", "pai2020"); err == nil || !strings.Contains(err.Error(), "holds no pai_task_table.csv, .csv.gz or .tar.gz") {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestPAI2023(t *testing.T) {
	w, err := readText([]byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"+
		"p0,12000,16384,1,1000,,LS,Running,0,12537496,10\n"+
		"p1,6000,12288,1,460,V100M32,LS,Running,427061,427161,427061\n"+
		"p2,6000,12288,8,1000,T4|A10,LS,Running,427062,427163,427061\n"+
		"p3,6000,12288,0,0,,BE,Running,427063,427163,427061\n"+
		"p4,6000,12288,1,1000,,BE,Pending,427063,427163,\n"+
		"p5,6000,12288,1,1000,,BE,Failed,427063,427060,427061\n"+
		"p6,6000,12288,1,1000,,BE,Failed,427063,427063,427063\n"), "pods.csv", "")
	checkWorkload(t, w, err, "pai2023", []spec.Job{
		{ID: "p0", Devices: 1, Duration: 12537486 * time.Second},
		{ID: "p1", Submit: 427061 * time.Second, Devices: 1, Accelerator: "V100-SXM2-32GB", Duration: 100 * time.Second},
		{ID: "p2", Submit: 427062 * time.Second, Devices: 8, Duration: 102 * time.Second},
	}, []string{`pods.csv:7: deletion_time "427060": is before scheduled_time 427061`}, []string{
		"pods.csv:3: asks for a fraction of a device, counted as a whole one",
		"pods.csv:4: allows several types of accelerator, but not all; any may be used",
		"pods.csv:5: asks for no devices",
		"pods.csv:6: was never scheduled",
		"pods.csv:8: ran for no time",
	})
}
