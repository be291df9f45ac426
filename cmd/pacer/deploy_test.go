package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// deployFile returns the path of a file of cmd/server/deploy.
func deployFile(t *testing.T, name string) string {
	return filepath.Join(moduleDir(t), "cmd/server/deploy", name)
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	return string(spectest.ReadFile(t, path))
}

// output runs a program that the machine may lack, with additional variables, and returns what it printed.
func output(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		spectest.Lacks(t, program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = moduleDir(t)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestE2EDeployUnit: systemd accepts the unit, and counts little that it leaves open.
func TestE2EDeployUnit(t *testing.T) {
	text := fileText(t, deployFile(t, "pacer.service"))
	unit := filepath.Join(t.TempDir(), "pacer.service")
	text = strings.Replace(text, "/usr/local/bin/pacer", selfAs(t, "pacer"), 1)
	spectest.WriteFile(t, unit, []byte(text), 0o644)
	if out := output(t, nil, "systemd-analyze", "verify", unit); strings.Contains(out, "pacer.service:") {
		t.Error(out)
	}
	output(t, nil, "systemd-analyze", "security", "--offline=true", "--threshold=15", unit) // of 100; above it fails
}

// TestE2EDeployKubernetes runs the commands of the guide: a real API server accepts every object, and knows each of
// its fields.
func TestE2EDeployKubernetes(t *testing.T) {
	c := kubernetesCluster(t)
	dir := t.TempDir()
	var commands string
	blocks := regexp.MustCompile("(?s)\n```console\n(kubectl apply -k cmd/server/deploy.*?)```").FindAllStringSubmatch(fileText(t, filepath.Join(moduleDir(t), "docs/guides/serve.md")), -1)
	for _, b := range blocks {
		commands += b[1]
	}
	if len(blocks) != 2 {
		t.Fatal("the guide does not say how to deploy a server and its replicas")
	}
	for name, target := range map[string]string{"pacer": selfAs(t, "pacer"), "kubectl": kubetest.Program(t, "kubectl"), "cmd": filepath.Join(moduleDir(t), "cmd")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out := output(t, []string{"KUBECONFIG=" + c.Kubeconfig, "HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}, "sh", "-euc", "cd "+dir+"\n"+commands)
	for _, object := range []string{"namespace", "configmap", "service", "statefulset.apps", "deployment.apps", "poddisruptionbudget.policy", "networkpolicy.networking.k8s.io", "secret"} {
		if !regexp.MustCompile(`(?m)^` + object + `/pacer\S* created`).MatchString(out) {
			t.Errorf("no %s of:\n%s", object, out)
		}
	}
	if strings.Contains(out, "Warning") { // such as of pod security
		t.Error(out)
	}
}

// TestE2EDeployImage: the image is small, and its binary serves without anything else of the system.
func TestE2EDeployImage(t *testing.T) {
	dir := t.TempDir()
	buildah := fmt.Sprintf("buildah --root %s/root --runroot %s/run", dir, dir)
	env := []string{"STORAGE_DRIVER=vfs", "BUILDAH_ISOLATION=chroot"}
	run := func(args string) string {
		words := strings.Fields(args)
		return output(t, env, words[0], words[1:]...)
	}
	run("buildah version")
	output(t, env, "make", "image", "IMAGE=pacer-test", "BUILDER="+buildah)
	archive := filepath.Join(dir, "image.tar")
	run(buildah + " push pacer-test oci-archive:" + archive)
	root := strings.TrimSpace(run(buildah + " mount " + strings.TrimSpace(run(buildah+" from pacer-test"))))
	t.Cleanup(func() { run(buildah + " rm -a") })
	for path, most := range map[string]int64{archive: 30e6, filepath.Join(root, "pacer"): 80e6} {
		if info, err := os.Stat(path); err != nil || info.Size() > most {
			t.Errorf("%s: %v, %v, want at most %d bytes", path, info, err, most)
		}
	}
	s := startServing(t, filepath.Join(root, "pacer"), t.TempDir())
	answer, err := http.Get(s.url + "/readyz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
}

// TestE2EDeployAlerts: each alert is tested, once firing and once not.
func TestE2EDeployAlerts(t *testing.T) {
	output(t, nil, "promtool", "check", "rules", deployFile(t, "alerts.yaml"))
	output(t, nil, "promtool", "test", "rules", deployFile(t, "alerts_test.yaml"))
	rules, cases := fileText(t, deployFile(t, "alerts.yaml")), fileText(t, deployFile(t, "alerts_test.yaml"))
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		fires, silent := "alertname: "+m[1]+"\n        exp_alerts:", "alertname: "+m[1]+"}"
		if strings.Count(cases, fires) != 1 || strings.Count(cases, silent) != 1 {
			t.Errorf("%s is not tested twice", m[1])
		}
	}
}

// TestE2EDeployDashboard: a real Prometheus has data for each query of the dashboard and each metric of an alert.
func TestE2EDeployDashboard(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		spectest.Lacks(t, "prometheus")
	}
	dir, token := t.TempDir(), "a-token-of-many-characters"
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		spectest.WriteFile(t, path, []byte(text), 0o600)
		return path
	}
	shared := "file://" + filepath.Join(dir, "shared")
	s := startServing(t, selfAs(t, "pacer"), filepath.Join(dir, "data"), "--token-file", write("token", token), "--publish", shared)
	replica := startServing(t, selfAs(t, "pacer"), filepath.Join(dir, "replica"), "--token-file", write("token", token), "--replica-of", shared)
	config := write("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%s]
scrape_configs:
  - {job_name: pacer, authorization: {credentials: %s}, static_configs: [{targets: [%s, %s]}]}
`, deployFile(t, "alerts.yaml"), token, strings.TrimPrefix(s.url, "http://"), strings.TrimPrefix(replica.url, "http://")))
	base := startPrometheus(t, config, dir)

	want := queries(t)
	for n, until := 0, time.Now().Add(2*time.Minute); len(want) > 0; n++ {
		if time.Now().After(until) {
			t.Fatalf("no data for %q", want)
		}
		for path, body := range map[string]string{
			"/v1/plan":         `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":64}`,
			"/v1/curve":        fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","max_devices":8,"global_batch":%d}`, n+1),
			"/v1/measurements": fmt.Sprintf(`{"measurements":[{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=4,zero=3","shape":"8"},"outcome":"ok","step_sec":[%d],"source":"ours"}]}`, n+1),
		} {
			for _, bearer := range []string{token, "wrong"} {
				r, _ := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+bearer)
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
			}
		}
		for name, q := range want {
			if hasData(t, base, q) {
				delete(want, name)
			}
		}
	}
}

// queries are the queries of the dashboard by panel, and the metrics of the alerts.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(fileText(t, deployFile(t, "dashboard.json"))), &board); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	variables := strings.NewReplacer("$instance", ".*", "$__rate_interval", "20s")
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			out[fmt.Sprint(p.Title, " ", i)] = variables.Replace(target.Expr)
		}
	}
	if len(out) < 20 {
		t.Fatalf("%d queries read", len(out))
	}
	for _, metric := range regexp.MustCompile(`\bpacer_\w+`).FindAllString(fileText(t, deployFile(t, "alerts.yaml")), -1) {
		out[metric] = metric
	}
	return out
}

// hasData reports whether Prometheus answers a query with a number.
func hasData(t *testing.T, base, query string) bool {
	t.Helper()
	answer, err := http.Get(base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var out struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Error != "" {
		t.Fatalf("%s: %v %s", query, err, out.Error)
	}
	for _, r := range out.Data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err == nil && !math.IsNaN(v) {
			return true
		}
	}
	return false
}

// startPrometheus starts a Prometheus that is ready, and returns its address.
func startPrometheus(t *testing.T, config, dir string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+addr)
	mustStart(t, cmd)
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return "http://" + addr
			}
		}
		if time.Now().After(until) {
			t.Fatal("prometheus is not ready after a minute")
		}
	}
}
