package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var servingLine = regexp.MustCompile(`listening on (http://\S+?),`)

// serving is a server under test.
type serving struct {
	cmd  *exec.Cmd
	url  string
	done chan struct{} // its standard error has ended
}

func startServing(t *testing.T, pacer, data string) *serving {
	t.Helper()
	s := &serving{cmd: exec.Command(pacer, "--data", data, "serve", "--listen", "127.0.0.1:0", "--refit", "20ms"), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), tokenVariable+"=")
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(s.done)
		defer close(url)
		for sc := bufio.NewScanner(errs); sc.Scan(); {
			if m := servingLine.FindStringSubmatch(sc.Text()); m != nil {
				url <- m[1]
			}
		}
	}()
	if s.url = <-url; s.url == "" {
		t.Fatal("the server did not say where it listens")
	}
	return s
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
		timer := time.AfterFunc(300*time.Millisecond, func() { _ = s.cmd.Process.Signal(sig) })
		acked := postRows(t, s.url, rows)
		timer.Stop()
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
// and returns those it acknowledged.
func postRows(t *testing.T, url string, rows []spec.Measurement) []spec.Measurement {
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
				acked = append(acked, rows[i])
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
