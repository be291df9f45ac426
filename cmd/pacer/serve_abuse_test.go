package main

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestE2EAbuse sends a server with little memory 16 hostile bodies of 8 MiB at a time. Each is
// refused, at a bounded cost of memory and processor time, and the server goes on to answer.
func TestE2EAbuse(t *testing.T) {
	fill := func(head, item, tail string) string {
		return head + strings.Repeat(item+",", (8<<20-len(head)-len(tail)-len(item))/(len(item)+1)) + item + tail
	}
	bodies := [][2]string{
		{"/v1/predict/batch", fill(`{"questions":[`, `{}`, `]}`)},
		{"/v1/predict", fill(`{`, `"nosuch":1`, `}`)},
		{"/v1/measurements", fill(`{"measurements":[{"step_sec":[`, `1`, `]}]}`)},
		{"/v1/plan", fill(`{"zero":[`, `9`, `]}`)},
	}
	s := startServing(t, selfAs(t, "pacer"), t.TempDir(), "--memory-gib", "0.5")
	defer func() {
		_ = s.cmd.Process.Kill()
		<-s.done
		_ = s.cmd.Wait()
	}()
	proc, err := procfs.NewProc(s.cmd.Process.Pid)
	if err != nil {
		spectest.Lacks(t, "no /proc: ", err)
	}
	seconds := func() float64 {
		stat, err := proc.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return stat.CPUTime()
	}
	before := seconds()
	var wg sync.WaitGroup
	var mu sync.Mutex
	status := map[int]int{}
	for i := range 16 {
		wg.Go(func() {
			for k := range bodies {
				b := bodies[(i+k)%len(bodies)]
				res, err := http.Post(s.url+b[0], "application/json", strings.NewReader(b[1]))
				if err != nil {
					continue // refused before the end of the body
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				mu.Lock()
				status[res.StatusCode]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	each := (seconds() - before) / float64(16*len(bodies))
	memory, err := proc.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.3f CPU-s each, at most %d MiB resident, answers by status: %v", each, memory.VmHWM>>20, status)
	if memory.VmHWM > 1<<30 {
		t.Errorf("%d MiB resident, want at most 1024", memory.VmHWM>>20)
	}
	if limit := spectest.Patience(200 * time.Millisecond).Seconds(); each > limit {
		t.Errorf("%.2f s of processor time each, want at most %.2f", each, limit)
	}
	if status[http.StatusUnprocessableEntity] == 0 {
		t.Error("no body was read")
	}
	for code := range status {
		if code != http.StatusUnprocessableEntity && code != http.StatusTooManyRequests {
			t.Errorf("status %d", code)
		}
	}
	res, err := http.Post(s.url+"/v1/predict", "application/json", strings.NewReader(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("afterwards: %v %v", res, err)
	}
	res.Body.Close()
}

// TestE2EOnlineBackup copies the store of a running server, and restores it elsewhere, by TCP and by a socket file.
func TestE2EOnlineBackup(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "socket")} {
		checkOnlineBackup(t, listen)
	}
}

func checkOnlineBackup(t *testing.T, listen string) {
	t.Helper()
	pacer, data, other := selfAs(t, "pacer"), t.TempDir(), filepath.Join(t.TempDir(), "other")
	s := startServing(t, pacer, data, "--listen", listen)
	rows := inventedRows(50)
	client, err := remote.New(s.url, remote.Options{})
	if err == nil {
		err = client.Put(t.Context(), rows...)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy")
	for _, args := range [][]string{{"--data", data, "store", "backup", file}, {"--data", other, "store", "restore", file}} {
		if out, err := exec.Command(pacer, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	if err := holdsFirst(filepath.Join(other, "store"), rows, len(rows)); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	_ = s.cmd.Wait()
	if err := store.CheckBackup(file); err != nil {
		t.Error(err)
	}
}
