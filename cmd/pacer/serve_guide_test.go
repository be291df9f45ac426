package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner/remote"
)

// guideBlocks returns the commands of docs/guides/serve.md that begin with a text, each line as it is.
func guideBlocks(t *testing.T, begins string) (lines []string) {
	t.Helper()
	text := fileText(t, filepath.Join(moduleDir(t), "docs/guides/serve.md"))
	for _, block := range regexp.MustCompile("(?s)\n```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(block[1], begins) {
			lines = append(lines, strings.Split(strings.TrimSpace(block[1]), "\n")...)
		}
	}
	return lines
}

// TestGuideOfServe: a test runs each block of commands of docs/guides/serve.md.
func TestGuideOfServe(t *testing.T) {
	runs := []string{ // the beginning of a block, and what runs it
		"bin/pacer serve  ",     // TestE2EGuideOfServe
		"curl -s localhost",     // TestDocs of cmd/server
		"pacer token create",    // TestE2EGuideOfTokens
		"useradd",               // TestE2EGuideOfUnit
		"kubectl apply",         // TestE2EDeployKubernetes
		"pacer serve --otlp",    // TestE2ETelemetry
		"pacer --data writer",   // TestE2EGuideOfReplicas
		"bin/pacer serve --grp", // TestE2EGuideOfGRPC
	}
	all, covered := len(guideBlocks(t, "")), 0
	for _, begins := range runs {
		n := len(guideBlocks(t, begins))
		if n == 0 {
			t.Errorf("no block begins with %q", begins)
		}
		covered += n
	}
	if covered != all || strings.Contains(fileText(t, filepath.Join(moduleDir(t), "docs/guides/serve.md")), "\n```sh") {
		t.Errorf("%d of %d lines of commands are run by a test", covered, all)
	}
}

// guideServer starts the server of a line, at free ports of its addresses, in dir. The line has no --data.
func guideServer(t *testing.T, dir, line string) *serving {
	t.Helper()
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(strings.NewReplacer(":8470", ":0", ":8471", ":0").Replace(line))
	if len(words) < 2 || filepath.Base(words[0]) != "pacer" || words[1] != "serve" {
		t.Fatalf("another form: %s", line)
	}
	if !strings.Contains(line, "--listen") {
		words = append(words, "--listen", "127.0.0.1:0")
	}
	s := &serving{cmd: exec.Command(selfAs(t, "pacer"), words[1:]...), done: make(chan struct{})}
	s.cmd.Dir = dir
	s.cmd.Env = append(os.Environ(), "PACER_TOKEN=", "XDG_DATA_HOME="+filepath.Join(dir, "home"), "TMPDIR="+dir)
	s.listen(t)
	return s
}

// end ends the server, which must exit with 0.
func (s *serving) end(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, s.last)
	}
}

// postJSON returns the answer to a question.
func postJSON[O any](t *testing.T, url, body string) (out O) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, res.StatusCode, b, err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestE2EGuideOfServe runs the first commands of the guide: a server of the data directory, and --demo, which answers
// from the measurements that are built in, with the request of the guide. Both end with 0, and the demo leaves no file.
func TestE2EGuideOfServe(t *testing.T) {
	lines := guideBlocks(t, "bin/pacer serve  ")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "bin/pacer serve --demo ") {
		t.Fatalf("%q", lines)
	}
	request := regexp.MustCompile(`(?s)curl -s localhost:8470(/\S+) .*-d '(.*)'`).FindStringSubmatch(strings.Join(lines[2:], "\n"))
	if request == nil {
		t.Fatalf("no request in %q", lines)
	}
	for i, line := range lines[:2] {
		dir := t.TempDir()
		s := guideServer(t, dir, line)
		plans := postJSON[query.Plans](t, s.url+request[1], request[2])
		if len(plans.Plans) != 3 || !plans.Plans[0].Fits || !(plans.Plans[0].StepTimeSec > 0) {
			t.Errorf("%s: %+v", line, plans)
		}
		predict := fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","plan":%q,"shape":%q}`, plans.Plans[0].Plan, plans.Plans[0].Shape)
		if got := postJSON[query.Plans](t, s.url+"/v1/predict", predict); got.Plans[0].StepTimeSec != plans.Plans[0].StepTimeSec {
			t.Errorf("%s: predicted %g s, planned %g s", line, got.Plans[0].StepTimeSec, plans.Plans[0].StepTimeSec)
		}
		var stored struct{ Measurements []struct{ Rows int } }
		get(t, s.url+"/v1/measurements", &stored)
		if demo := i == 1; demo != (len(stored.Measurements) > 0) {
			t.Errorf("%s: %d groups of measurements", line, len(stored.Measurements))
		}
		s.end(t)
		if left, err := os.ReadDir(dir); err != nil || i == 1 && len(left) > 0 {
			t.Errorf("%s left %v, %v", line, left, err)
		}
	}
}

// selfSigned writes server.crt and server.key of localhost into dir, and returns a client that trusts them.
func selfSigned(t *testing.T, dir string) *http.Client {
	t.Helper()
	output(t, nil, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=localhost",
		"-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", filepath.Join(dir, "server.key"), "-out", filepath.Join(dir, "server.crt"))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(spectest.ReadFile(t, filepath.Join(dir, "server.crt")))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
}

// TestE2EGuideOfTokens runs the commands of "Secure": two tokens, and a server for other machines, over TLS. Each token
// allows what its scope says, and the server reads a further token while it runs.
func TestE2EGuideOfTokens(t *testing.T) {
	lines := guideBlocks(t, "pacer token create")
	if len(lines) != 3 {
		t.Fatalf("%q", lines)
	}
	dir := t.TempDir()
	client := selfSigned(t, dir)
	secrets := []string{""}
	for _, line := range lines[:2] {
		cmd := exec.Command(selfAs(t, "pacer"), strings.Fields(line)[1:]...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		secrets = append(secrets, string(bytes.TrimSpace(out)))
	}
	s := guideServer(t, dir, lines[2])
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("%s answers at %s", lines[2], s.url)
	}
	address := "https://localhost" + s.url[strings.LastIndex(s.url, ":"):]
	row := `{"measurements":[{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8","shape":"8"},"outcome":"ok","step_sec":[1],"source":"ours"}]}`
	for _, c := range []struct {
		method, path, body string
		want               [3]int // without a token, ci, lab
	}{
		{"GET", "/healthz", "", [3]int{200, 200, 200}}, {"GET", "/v1/models", "", [3]int{401, 403, 200}},
		{"POST", "/v1/measurements", row, [3]int{401, 200, 403}}, {"GET", "/v1/backup", "", [3]int{401, 403, 403}},
		{"POST", "/v1/store/compact", "{}", [3]int{401, 403, 403}},
	} {
		for i, secret := range secrets {
			req, err := http.NewRequest(c.method, address+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if secret != "" {
				req.Header.Set("Authorization", "Bearer "+secret)
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != c.want[i] {
				t.Errorf("%s %s with token %d: %d, want %d", c.method, c.path, i, res.StatusCode, c.want[i])
			}
		}
	}
	s.end(t)
}

// TestE2EGuideOfGRPC runs the command of "gRPC and Arrow Flight", and asks it.
func TestE2EGuideOfGRPC(t *testing.T) {
	lines := guideBlocks(t, "bin/pacer serve --grp")
	if len(lines) != 1 {
		t.Fatalf("%q", lines)
	}
	s := guideServer(t, t.TempDir(), lines[0])
	c, err := remote.New(s.url, remote.Options{Flight: s.rpc})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := c.PredictAll(t.Context(), []remote.Question{{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,ga=8,zero=3,recompute=full"}})
	if err != nil || s.rpc == "" || !answers[0].Fits {
		t.Errorf("%q: %+v, %v", s.rpc, answers, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.end(t)
}

// TestE2EGuideOfUnit runs the commands of "Deploy" below a directory, but for the user and the start of the service, which
// need root and systemd. The command of the installed unit then serves with the installed configuration and token.
func TestE2EGuideOfUnit(t *testing.T) {
	dir, root := t.TempDir(), moduleDir(t)
	for name, target := range map[string]string{"bin/pacer": selfAs(t, "pacer"), "cmd": filepath.Join(root, "cmd")} {
		path := filepath.Join(dir, "work", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"usr/local/bin", "etc/systemd/system", "var/lib/pacer"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	below := strings.NewReplacer(" /usr/", " "+dir+"/usr/", " /etc/", " "+dir+"/etc/", "=/usr/", "="+dir+"/usr/", " /var/", " "+dir+"/var/", " -o pacer", "", "runuser -u pacer -- ", "")
	var left []string
	script := ""
	for _, line := range guideBlocks(t, "useradd") {
		if strings.HasPrefix(line, "useradd ") || strings.HasPrefix(line, "systemctl ") {
			left = append(left, line)
			continue
		}
		script += below.Replace(line) + "\n"
	}
	if len(left) != 2 || strings.Count(script, "\n") != 5 {
		t.Fatalf("left out %q of\n%s", left, script)
	}
	install := exec.Command("sh", "-euc", script)
	install.Dir = filepath.Join(dir, "work")
	install.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "usr/local/bin")+":"+os.Getenv("PATH"))
	out, err := install.Output() // what it prints is the token
	if err != nil {
		t.Fatalf("%s\n%v", script, err)
	}

	config := filepath.Join(dir, "etc/pacer/serve.yaml")
	text := fileText(t, config)
	writeFile(t, config, strings.Replace(below.Replace(text), "0.0.0.0:8470", "127.0.0.1:0", 1))
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(below.Replace(fileText(t, filepath.Join(dir, "etc/systemd/system/pacer.service"))))
	if start == nil || !strings.HasPrefix(start[1], dir) {
		t.Fatalf("the unit starts %q", start)
	}
	words := strings.Fields(start[1])
	s := &serving{cmd: exec.Command(words[0], words[1:]...), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "PACER_TOKEN=", "PACER_SERVE_SHUTDOWN_DELAY=0s")
	s.listen(t)
	c, err := remote.New(s.url, remote.Options{Token: string(bytes.TrimSpace(out))})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), http.MethodGet, "/v1/version", nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "var/lib/pacer/store")); err != nil {
		t.Error(err)
	}
	s.end(t)
}
