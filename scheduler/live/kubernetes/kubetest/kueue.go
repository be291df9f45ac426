package kubetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// InstallKueue makes the cluster serve the objects of Kueue until the end of the test. Its controller does not run.
func (c *Cluster) InstallKueue(t testing.TB) { c.install(t, "crds/kueue") }

// StartKueue runs the controller of Kueue until the end of the test, without its webhooks. It schedules Jobs.
func (c *Cluster) StartKueue(t testing.TB) {
	t.Helper()
	program, dir := Program(t, "kueue"), t.TempDir()
	c.InstallKueue(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	// Its certificates have a fixed place, so it has an /etc of its own.
	certificates := filepath.Join(dir, "etc/kueue/metrics/certs")
	if err := os.MkdirAll(certificates, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"apiserver.crt": "tls.crt", "apiserver.key": "tls.key"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, "pki", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(certificates, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "kueue.yaml")
	text := fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {port: %d, certDir: %s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job]}
`, port, certificates)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", `mount --bind "$1" /etc; shift; exec "$@"`, "sh",
		filepath.Join(dir, "etc"), program, "--config", config, "--kubeconfig", c.Kubeconfig, "--feature-gates", "VisibilityOnDemand=false")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text := log.String()
			t.Logf("kueue: ...%s", text[max(0, len(text)-6000):])
		}
	})
	t.Cleanup(func() { // while it runs, since it keeps what is in use
		c.Kubectl(t, "", "delete", "jobs", "--all", "--cascade=background", "--timeout=1m")
		c.Kubectl(t, "", "delete", "workloads,localqueues,clusterqueues,resourceflavors,admissionchecks", "--all", "--timeout=1m")
	})
}
