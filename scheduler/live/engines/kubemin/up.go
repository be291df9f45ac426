package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

func init() { runtime.LockOSThread() } // PR_SET_PDEATHSIG is of the thread that starts a process

// cluster is the state of up.
type cluster struct {
	dir          string
	exe          string
	token        string
	etcd, server int // ports
	peer         int
}

// component is a process of the control plane.
type component struct {
	name string
	args []string
	cmd  *exec.Cmd
	exit chan error
}

// up runs the control plane until ctx ends, or a pipe that is its standard input, with all its
// files in dir; "" = a new one, removed at the end unless there is an error. A component that
// ends starts again. Once the API server is ready up prints the path of the kubeconfig.
func up(ctx context.Context, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "kubemin"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(dir)
			}
		}()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in, err := os.Stdin.Stat(); err == nil && in.Mode()&os.ModeNamedPipe != 0 {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	c := &cluster{dir: dir, token: rand.Text()}
	if c.exe, err = os.Executable(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	all := c.components()
	defer func() {
		for i := len(all) - 1; i >= 0; i-- {
			all[i].stop()
		}
	}()
	ready := make(chan error, 1)
	for _, p := range all {
		if err := p.start(c); err != nil {
			return err
		}
		if p.name == "kube-apiserver" { // the others would wait for it with growing pauses
			go func() { ready <- c.ready(ctx) }()
			if err := c.watch(ctx, all, ready); err != nil {
				return err
			}
		}
	}
	fmt.Println(c.path("kubeconfig"))
	return c.watch(ctx, all, nil)
}

// watch restarts components that end, until until has a value or ctx ends.
func (c *cluster) watch(ctx context.Context, all []*component, until chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-until:
			return err
		case <-time.After(20 * time.Millisecond):
		}
		for _, p := range all {
			select {
			case err := <-p.exit:
				fmt.Fprintf(os.Stderr, "kubemin: %s ended: %v\n", p.name, err)
				if err := p.start(c); err != nil {
					return err
				}
			default:
			}
		}
	}
}

func (c *cluster) path(name ...string) string {
	return filepath.Join(append([]string{c.dir}, name...)...)
}

// prepare makes directories, keys and the kubeconfig, and finds free ports.
func (c *cluster) prepare() error {
	for _, d := range []string{"pki", "log", "etcd", "pid", "pods"} {
		if err := os.MkdirAll(c.path(d), 0o700); err != nil {
			return err
		}
	}
	for _, p := range []*int{&c.etcd, &c.peer, &c.server} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		*p = l.Addr().(*net.TCPAddr).Port
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(c.path("pki", "sa.key"), text, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("pki", "tokens.csv"), []byte(c.token+",admin,1,system:masters\n"), 0o600); err != nil {
		return err
	}
	k := clientapi.NewConfig()
	k.Clusters["kubemin"] = &clientapi.Cluster{Server: c.url(), CertificateAuthority: c.path("pki", "apiserver.crt")}
	k.AuthInfos["admin"] = &clientapi.AuthInfo{Token: c.token}
	k.Contexts["kubemin"] = &clientapi.Context{Cluster: "kubemin", AuthInfo: "admin"}
	k.CurrentContext = "kubemin"
	return clientcmd.WriteToFile(*k, c.path("kubeconfig"))
}

func (c *cluster) url() string { return "https://127.0.0.1:" + strconv.Itoa(c.server) }

func (c *cluster) components() []*component {
	etcd := "http://127.0.0.1:" + strconv.Itoa(c.etcd)
	peer := "http://127.0.0.1:" + strconv.Itoa(c.peer)
	config := c.path("kubeconfig")
	return []*component{
		{name: "etcd", args: []string{"etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
			"--listen-client-urls", etcd, "--advertise-client-urls", etcd,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer}},
		{name: "kube-apiserver", args: []string{"kube-apiserver", "--etcd-servers", etcd,
			"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", strconv.Itoa(c.server),
			"--cert-dir", c.path("pki"), "--token-auth-file", c.path("pki", "tokens.csv"), "--authorization-mode", "RBAC",
			"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.path("pki", "sa.key"),
			"--service-account-signing-key-file", c.path("pki", "sa.key"), "--service-cluster-ip-range", "10.0.0.0/16",
			// No controller gives namespaces a service account, or removes the taint of new nodes.
			"--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
			"--max-requests-inflight", "2000", "--max-mutating-requests-inflight", "1000"}},
		{name: "controllers", args: []string{"controllers", config}},
		{name: "kubelet", args: []string{"kubelet", config, c.path("pods")}},
		{name: "kube-scheduler", args: []string{"kube-scheduler", "--kubeconfig", config, "--leader-elect=false",
			"--secure-port", "0", "--kube-api-qps", "500", "--kube-api-burst", "1000"}},
	}
}

// ready waits until the API server answers.
func (c *cluster) ready(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		ca, err := os.ReadFile(c.path("pki", "apiserver.crt"))
		if err != nil {
			continue // the server has not written it yet
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url()+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("the API server is not ready after 3 minutes, see " + c.path("log", "kube-apiserver.log"))
}

func (p *component) start(c *cluster) error {
	log, err := os.OpenFile(c.path("log", p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.exe, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: an interrupt at the terminal reaches up alone, which stops the others in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.exit = cmd, make(chan error, 1)
	go func() { p.exit <- cmd.Wait() }()
	return os.WriteFile(c.path("pid", p.name), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

func (p *component) stop() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exit:
	case <-time.After(3 * time.Second):
		p.cmd.Process.Kill()
		<-p.exit
	}
}
