package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/command"
)

// TestE2EStandby: a writer that waits for the lease answers its checks, ends with 0 on SIGTERM, and answers questions at the
// same address once the writer before has ended.
func TestE2EStandby(t *testing.T) {
	pacer, dir := selfAs(t, "pacer"), t.TempDir()
	publish := "file://" + filepath.Join(dir, "shared")
	first := startServing(t, pacer, filepath.Join(dir, "first"), "--publish", publish)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	second := func() *exec.Cmd {
		cmd := exec.Command(pacer, "--data", filepath.Join(dir, "second"), "serve", "--listen", addr, "--publish", publish)
		cmd.Env = append(os.Environ(), command.TokenVariable+"=")
		mustStart(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	// status returns that of an answer, with its text, and 0 while there is none.
	status := func(path string) (int, string) {
		res, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + addr + path)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, string(text)
	}
	until := func(path string, want int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got, text := status(path)
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d %s, want %d", path, got, text, want)
			}
		}
	}

	cmd := second()
	until("/healthz", http.StatusOK)
	if got, text := status("/readyz"); got != http.StatusServiceUnavailable || !strings.Contains(text, "waits for the lease") {
		t.Errorf("readyz: %d %s", got, text)
	}
	if got, text := status("/metrics"); got != http.StatusOK || !strings.Contains(text, "\npacer_standby_seconds ") {
		t.Errorf("metrics: %d %s", got, text)
	}
	if got, text := status("/v1/models"); got != http.StatusServiceUnavailable {
		t.Errorf("a question: %d %s", got, text)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGTERM while it waits: %v", err)
	}

	cmd = second()
	until("/healthz", http.StatusOK)
	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	<-first.done
	_ = first.cmd.Wait()
	until("/readyz", http.StatusOK)
	if got, text := status("/v1/models"); got != http.StatusOK {
		t.Errorf("a question: %d %s", got, text)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
}
