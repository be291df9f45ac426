package trace

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// openMap reads a workload of a file system in memory.
func openMap(root fs.FS, path, format string) (Workload, error) {
	return readInput(&input{ctx: context.Background(), root: root, path: path, name: path}, format)
}

// readText reads a workload from the content of a file.
func readText(data []byte, name, format string) (Workload, error) {
	return openMap(fstest.MapFS{name: {Data: data}}, name, format)
}

// jobsOf yields the jobs of a file as they are read.
func jobsOf(ctx context.Context, root fs.FS, file string) iter.Seq2[spec.Job, error] {
	return func(yield func(spec.Job, error) bool) {
		in := &input{ctx: ctx, root: root, path: file, name: file}
		if err := in.open(""); err != nil {
			yield(spec.Job{}, err)
			return
		}
		defer in.close()
		in.jobs()(yield)
	}
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tarred returns an archive of name, content, name, content.
func tarred(t *testing.T, files ...string) string {
	t.Helper()
	var b strings.Builder
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: "dir/" + files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Archives are unpacked, and the trace in them is found by name.
func TestReadJobsUnpacks(t *testing.T) {
	root := fstest.MapFS{
		"log.gz":     {Data: gzipped(t, phillyCut)},
		"log.tar":    {Data: []byte(tarred(t, "cluster_gpu_util", "a,b", "cluster_job_log", phillyCut))},
		"log.tar.gz": {Data: gzipped(t, tarred(t, "cluster_job_log", phillyCut))},
	}
	for file := range root {
		w, err := openMap(root, file, "")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if d := cmp.Diff(phillyCutJobs, w.Jobs); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
	root["other.tar"] = &fstest.MapFile{Data: []byte(tarred(t, "readme", "text"))}
	if w, err := openMap(root, "other.tar", ""); err == nil || !strings.Contains(err.Error(), "other.tar: the archive holds no file cluster_job_log or cluster_log") {
		t.Errorf("%+v, %v", w, err)
	}
	root["cut.gz"] = &fstest.MapFile{Data: root["log.gz"].Data[:100]}
	if w, err := openMap(root, "cut.gz", "philly"); err == nil {
		t.Errorf("a cut archive: %+v", w)
	}
	root["dir/file"] = &fstest.MapFile{}
	for file, want := range map[string]string{
		"none": "none: file does not exist", "dir": "dir: the directory holds no table of a known workload format", "dir/file": "dir/file: the file is empty",
	} {
		if w, err := openMap(root, file, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want an error with %q", file, w, err, want)
		}
	}
	if w, err := openMap(root, "dir", "helios"); err == nil || !strings.Contains(err.Error(), "dir: a trace of format helios is a file") {
		t.Errorf("%+v, %v", w, err)
	}
}

// Jobs are yielded before the file was read to its end, and reading stops early on request.
func TestReadJobsStreams(t *testing.T) {
	rows := 0
	root := endless{line: func() string { rows++; return fmt.Sprintf("%d,%d,1,5\n", rows, rows) }}
	n := 0
	for j, err := range jobsOf(t.Context(), root, "jobs.csv") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 100 {
			if j.ID != "100" || j.Submit != 100*time.Second {
				t.Errorf("%+v", j)
			}
			break
		}
	}
	if n != 100 || rows > 1<<16 {
		t.Errorf("%d jobs of %d rows", n, rows)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range jobsOf(ctx, root, "jobs.csv") {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}

// endless is a file system with one endless job table.
type endless struct{ line func() string }

func (e endless) Open(string) (fs.File, error) {
	return &endlessFile{line: e.line, rest: "job_id,submit_s,gpus,duration_s\n"}, nil
}

type endlessFile struct {
	line func() string
	rest string
}

func (f *endlessFile) Read(p []byte) (int, error) {
	if f.rest == "" {
		f.rest = f.line()
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (*endlessFile) Close() error { return nil }
func (*endlessFile) Stat() (fs.FileInfo, error) {
	return fstest.MapFS{"f": {}}.Stat("f")
}

// An overlong line is an error, before it fills the memory.
func TestReadJobsLongLine(t *testing.T) {
	w, err := readText([]byte("job_id,submit_s,gpus,duration_s\n"+strings.Repeat("x", table.MaxLine+1)), "long.csv", "csv")
	if err == nil || !strings.Contains(err.Error(), "long.csv: line 2 is longer than 16 MiB") {
		t.Errorf("%+v, %v", w, err)
	}
}

// Every format names the origin of its trace, and names are unique.
func TestTraces(t *testing.T) {
	seen := map[string]bool{}
	for _, tr := range Formats() {
		if tr.Doc == "" || seen[tr.Name] {
			t.Errorf("%+v", tr)
		}
		seen[tr.Name] = true
		if published := tr.Name != "csv"; published && (tr.License == "" || tr.Commit == "" || !strings.HasPrefix(tr.URL, "https://github.com/")) {
			t.Errorf("%s: published where? %+v", tr.Name, tr)
		}
	}
	if !seen["philly"] || !seen["csv"] || !seen["dl2"] {
		t.Errorf("formats %v", seen)
	}
}

func FuzzTraces(f *testing.F) {
	f.Add("philly", phillyCut)
	f.Add("philly-csv", "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n")
	f.Add("helios", "job_id,user,vc,gpu_num,submit_time,duration\n1,u,v,1,2020-06-09 18:41:01,36848\n")
	f.Add("acme", "job_id,user,gpu_num,submit_time,start_time,end_time\n1,u,8,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00\n")
	f.Add("pai2023", "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time,gpu_spec\np1,1,460,427061,427161,427061,V100M32|T4\n")
	f.Add("alibaba-spot", "job_name,gpu_model,gpu_request,worker_num,submit_time,duration,job_type\n1,A10,0.5,3,0,9,HP\n")
	f.Add("tiresias", "job_id,num_gpu,submit_time,iterations,model_name,duration\n0,1,0,606,vgg19,164\n")
	f.Add("sia", "name,time,application,num_replicas,batch_size\ngpt-1,54.5,gpt_pmp,8,48\n")
	f.Add("blox", "job_id,submit_s,gpus,duration_s\n0,116,1,35424.3\n")
	f.Add("tables", paiTaskCut+"|"+paiJobCut)
	f.Add("", "\x1f\x8b")
	f.Fuzz(func(t *testing.T, format, data string) {
		var w Workload
		var err error
		if format == "tables" {
			tasks, jobs, _ := strings.Cut(data, "|")
			w, err = openMap(fstest.MapFS{"t/pai_task_table.csv": {Data: []byte(tasks)}, "t/pai_job_table.csv": {Data: []byte(jobs)}}, "t", "")
		} else {
			w, err = readText([]byte(data), "f", format)
		}
		if err != nil {
			return
		}
		checkFuzzed(t, w)
		if cut, err := ScaleLoad(w.Jobs, 2); err == nil {
			checkFuzzed(t, Workload{Jobs: cut})
		}
	})
}

// checkFuzzed reports invalid, repeated or unsorted jobs.
func checkFuzzed(t *testing.T, w Workload) {
	t.Helper()
	ids := map[spec.JobID]bool{}
	for i, j := range w.Jobs {
		if err := j.Validate(); err != nil {
			t.Error(err)
		}
		if ids[j.ID] || i > 0 && j.Submit < w.Jobs[i-1].Submit {
			t.Errorf("job %s is out of order or there twice", j.ID)
		}
		ids[j.ID] = true
	}
}
