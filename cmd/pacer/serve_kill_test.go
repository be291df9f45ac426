package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var (
	servingLine = regexp.MustCompile(`listening on ((?:https?://|unix:)\S+?),`)
	rpcLine     = regexp.MustCompile(`gRPC and Arrow Flight on (\S+)`)
)

// serving is a server under test.
type serving struct {
	cmd  *exec.Cmd
	url  string
	rpc  string        // address of gRPC, "" = none
	done chan struct{} // its standard error has ended
	last string        // line of its standard error, once done
}

func startServing(t *testing.T, pacer, data string, flags ...string) *serving {
	t.Helper()
	args := append([]string{"--data", data, "serve", "--listen", "127.0.0.1:0", "--refit", "20ms"}, flags...)
	s := &serving{cmd: exec.Command(pacer, args...), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), command.TokenVariable+"=")
	s.listen(t)
	return s
}

// listen starts the server, and waits until it listens.
func (s *serving) listen(t *testing.T) {
	t.Helper()
	lines := start(t, s.cmd)
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	url := make(chan string, 1)
	go func() {
		defer close(s.done)
		defer close(url)
		for line := range lines {
			s.last = line
			if m := rpcLine.FindStringSubmatch(line); m != nil {
				s.rpc = m[1]
			}
			if m := servingLine.FindStringSubmatch(line); m != nil {
				url <- m[1]
			}
		}
	}()
	if s.url = <-url; s.url == "" {
		t.Fatal("the server did not say where it listens")
	}
}

// TestE2EKilledServer ends the server with SIGTERM, then with SIGKILL, while
// measurements are posted: the store must hold every row it acknowledged, and
// SIGTERM must end it with exit code 0.
func TestE2EKilledServer(t *testing.T) {
	pacer := selfAs(t, "pacer")
	rows := inventedRows(400)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		data := t.TempDir()
		s := startServing(t, pacer, data)
		acked := postRows(t, s.url, rows, func() {
			time.AfterFunc(200*time.Millisecond, func() { _ = s.cmd.Process.Signal(sig) })
		})
		_ = s.cmd.Process.Signal(sig) // it may have ended
		<-s.done
		if err := s.cmd.Wait(); (err == nil) != (sig == syscall.SIGTERM) {
			t.Errorf("%v: %v", sig, err)
		}
		if len(acked) == 0 {
			t.Errorf("%v: nothing was acknowledged", sig)
		}
		if err := holdsFirst(filepath.Join(data, "store"), acked, len(acked)); err != nil {
			t.Errorf("%v, %d rows acknowledged: %v", sig, len(acked), err)
		}
	}
}

// postRows posts rows one by one, from several clients, until the server ends,
// and returns those it acknowledged. It calls first when the first one is.
func postRows(t *testing.T, url string, rows []spec.Measurement, first func()) []spec.Measurement {
	t.Helper()
	var mu sync.Mutex
	var acked []spec.Measurement
	var wg sync.WaitGroup
	const clients = 4
	for k := range clients {
		wg.Go(func() {
			for i := k; i < len(rows); i += clients {
				if !postRow(url, rows[i]) {
					return
				}
				mu.Lock()
				if acked = append(acked, rows[i]); len(acked) == 1 {
					first()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return acked
}

func postRow(url string, m spec.Measurement) bool {
	b, err := json.Marshal(map[string]any{"measurements": []spec.Measurement{m}})
	if err != nil {
		return false
	}
	res, err := http.Post(url+"/v1/measurements", "application/json", strings.NewReader(string(b)))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode == http.StatusOK
}

// While a server has the store open, requests are answered from the catalog with a warning, or
// fail with the address of the server. The address is removed when the server ends.
func TestE2EServedStore(t *testing.T) {
	pacer, data := selfAs(t, "pacer"), t.TempDir()
	s := startServing(t, pacer, data)
	res, err := http.Post(s.url+"/v1/measurements", "application/json", strings.NewReader(servedRows))
	if err == nil {
		res.Body.Close()
		res, err = http.Post(s.url+"/v1/fit", "application/json", strings.NewReader(`{"rows":0}`))
	}
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()
	pid := strconv.Itoa(s.cmd.Process.Pid)
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{"plan -m llama3-8b -a h100 -n 8 -b 64", "by analytic", "answered from the catalog alone", 0},
		{"predict -m llama3-8b -a h100 --plan dp=8,zero=3 --family hybrid", "", "POST /v1/predict", 1},
		{"ls models", "Llama3-8B", "only what the catalog knows", 0},
		{"ls measurements", "", "curl -s " + s.url + "/v1/measurements", 1},
		{"plan -m mine -a h100 -n 8 -b 64", "", "the store cannot be read", 1},
	} {
		var out, errs strings.Builder
		cmd := exec.Command(pacer, append([]string{"--data", data}, strings.Fields(c.args)...)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // its exit code says all
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(out.String(), c.out) {
			t.Errorf("%s: exit code %d, %s", c.args, cmd.ProcessState.ExitCode(), out.String())
		}
		for _, want := range []string{c.errs, s.url, "pid " + pid} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: %s lacks %s", c.args, errs.String(), want)
			}
		}
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "served")); !os.IsNotExist(err) {
		t.Errorf("the address is left: %v", err)
	}
}

const servedRows = `{"measurements":[
	{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=4,zero=3,recompute=full"},"outcome":"ok","step_sec":[6.6],"source":"ours"},
	{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=8,zero=3,recompute=full"},"outcome":"ok","step_sec":[13.1],"source":"ours"},
	{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=16,zero=3,recompute=full"},"outcome":"ok","step_sec":[26.1],"source":"ours"},
	{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=4,tp=2,ga=16,zero=1,recompute=full"},"outcome":"ok","step_sec":[14.9],"source":"ours"},
	{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=16,ga=8,zero=3,recompute=full"},"outcome":"ok","step_sec":[13.6],"source":"ours"}]}`
