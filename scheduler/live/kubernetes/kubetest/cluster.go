package kubetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// Cluster is a running Kubernetes.
type Cluster struct {
	Dir        string // logs are below
	Kubeconfig string // of an administrator
	Client     kubernetes.Interface

	cmd   *exec.Cmd
	stdin io.Closer
}

var (
	once   sync.Once
	shared *Cluster
	failed error
)

// Program returns the path of a program of the engines: kubemin, kubectl, kueue or versitygw. If it is not
// built the machine lacks it.
func Program(t testing.TB, name string) string {
	t.Helper()
	dir, err := engines()
	if err != nil {
		spectest.Lacks(t, "a real Kubernetes is not built: make engines")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		spectest.Lacks(t, name+" is not built: make engines")
	}
	return path
}

// engines returns PACER_ENGINES, or bin/engines of the module.
func engines() (string, error) {
	dir := os.Getenv("PACER_ENGINES")
	if dir == "" {
		up, err := os.Getwd()
		for err == nil && dir == "" && up != filepath.Dir(up) {
			if _, missing := os.Stat(filepath.Join(up, ".golangci.yml")); missing == nil { // the root of the module
				dir = filepath.Join(up, "bin", "engines")
			}
			up = filepath.Dir(up)
		}
	}
	_, err := os.Stat(filepath.Join(dir, "kubectl"))
	return dir, err
}

// Shared returns a cluster for all tests of this process. The main test function calls Stop at the
// end. The cluster of one that does not, or is killed, stops on its own.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	program := Program(t, "kubemin")
	once.Do(func() { shared, failed = start(program) })
	if failed != nil {
		t.Fatal(failed)
	}
	return shared
}

// Stop stops the cluster of this process, if there is one.
func Stop() {
	if shared != nil {
		shared.stop()
	}
}

// Main runs the tests of a package and stops the cluster.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

func start(program string) (*Cluster, error) {
	c := &Cluster{cmd: exec.Command(program, "up")}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil { // it stops when this is closed
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("kubetest: kubemin did not start: %w", err)
	}
	c.Kubeconfig = strings.TrimSpace(line)
	c.Dir = filepath.Dir(c.Kubeconfig)
	c.Client, err = Client(c.Kubeconfig)
	return c, err
}

// Client returns a client of a kubeconfig.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Config returns the configuration of a client without a limit of requests.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		config.QPS, config.Burst = 1000, 2000
	}
	return config, err
}

func (c *Cluster) stop() {
	c.stdin.Close()
	_ = c.cmd.Wait() // it removes its directory
}

// Kill kills a component, such as kube-apiserver, which then starts again.
func (c *Cluster) Kill(t testing.TB, component string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "pid", component))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Wait polls until ok returns nil. It fails the test with the last error after five minutes.
func Wait(t testing.TB, what string, ok func() error) {
	t.Helper()
	var err error
	for until := time.Now().Add(spectest.Patience(30 * time.Second)); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
