package s3test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

const bucket = "pacer"

// Server is an S3 server with one empty bucket.
type Server struct {
	addr, dir string
	cmd       *exec.Cmd
}

// Start starts a server that ends with the test, and sets the environment variables with its credentials. If it is not
// built, the machine lacks it.
func Start(t *testing.T) *Server {
	t.Helper()
	program := kubetest.Program(t, "versitygw")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret of tests", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	s := &Server{dir: t.TempDir()}
	for _, name := range []string{"objects/" + bucket, "attributes"} {
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	l.Close()
	s.start(t, program)
	t.Cleanup(s.Stop)
	return s
}

func (s *Server) start(t *testing.T, program string) {
	t.Helper()
	s.cmd = exec.Command(program, "--port", s.addr, "--access", os.Getenv("AWS_ACCESS_KEY_ID"), "--secret", os.Getenv("AWS_SECRET_ACCESS_KEY"), "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "attributes"), filepath.Join(s.dir, "objects"))
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + s.addr)
		if err == nil {
			answer.Body.Close()
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the S3 server does not answer after a minute: %v", err)
		}
	}
}

// Stop ends the server.
func (s *Server) Stop() {
	if s.cmd != nil {
		_, _ = s.cmd.Process.Kill(), s.cmd.Wait()
		s.cmd = nil
	}
}

// Restart starts the server again, with the objects that it had.
func (s *Server) Restart(t *testing.T) {
	t.Helper()
	s.Stop()
	s.start(t, kubetest.Program(t, "versitygw"))
}

// URL returns the URL of a prefix of the bucket, as gocloud.dev/blob/s3blob reads it.
func (s *Server) URL(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=http://%s&region=us-east-1&use_path_style=true", bucket, prefix, s.addr)
}
