package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/page"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// python runs a program of Python that imports the client, and returns what it prints.
func python(t *testing.T, env []string, args ...string) string {
	t.Helper()
	const interpreter = "/usr/bin/python3"
	if err := exec.Command(interpreter, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run(); err != nil {
		spectest.Lacks(t, "no "+interpreter+" from 3.9 on: ", err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, args...)
	cmd.Env = append(os.Environ(), append(env, "PYTHONPATH=clients/python", "PYTHONDONTWRITEBYTECODE=1")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("python %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// lossy loses the first answer to each operation, though it was carried out, and
// refuses the second request of it.
type lossy struct {
	http.Handler
	mu   sync.Mutex
	seen map[string]int
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	op := r.Method + " " + r.URL.Path
	l.seen[op]++
	n := l.seen[op]
	l.mu.Unlock()
	switch n {
	case 1:
		l.Handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case 2:
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		l.Handler.ServeHTTP(w, r)
	}
}

// The Python client has a method for every route, which the server answers.
func TestPythonClient(t *testing.T) {
	dir := t.TempDir()
	tokens, server := []access.Token{}, map[string]string{"version": "1.2.3", "certs": dir, "socket": filepath.Join(dir, "socket")}
	for _, scope := range []string{access.ScopeAdmin, access.ScopeRead} {
		tok, secret, err := access.NewToken(scope, []string{scope}, time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		tokens, server[scope] = append(tokens, tok), secret
	}
	file := filepath.Join(dir, "tokens.json")
	if err := access.WriteTokens(file, tokens); err != nil {
		t.Fatal(err)
	}
	ca := (*authority)(nil).sign(t, dir, "ca", 1)
	ca.sign(t, dir, "server", 2)
	ca.sign(t, dir, "client", 3)
	config, err := access.TLSConfig(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.crt"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := newServer(t, Options{TokensFile: file, Version: server["version"], AccessLog: slog.New(slog.NewJSONHandler(&log, nil))})
	plain := httptest.NewServer(s.Handler())
	defer plain.Close()
	flaky := httptest.NewServer(&lossy{Handler: newServer(t, Options{TokensFile: file}).Handler(), seen: map[string]int{}})
	defer flaky.Close()
	secure := newServer(t, Options{TokensFile: file, TLS: config})
	addr, _ := serve(t, secure)
	server["url"], server["flaky"], server["tls"] = plain.URL, flaky.URL, "https://localhost"+addr[strings.LastIndex(addr, ":"):]
	socket, err := net.Listen("unix", server["socket"])
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = local.Serve(socket) }() // until it is closed
	defer local.Close()

	python(t, []string{"PACER_TEST_SERVER=" + bodyOf(t, server)}, "clients/python/tests/test_client.py")
	plain.Close()
	local.Close()
	if missing := unanswered(t, s, &log); len(missing) > 0 {
		t.Errorf("no test of the Python client has an answer of %q", missing)
	}
}

// unanswered returns the routes of s without a request with status 200 in its access log, but those of the page.
func unanswered(t *testing.T, s *Server, log *bytes.Buffer) []string {
	t.Helper()
	missing := maps.Clone(s.router.routes)
	maps.DeleteFunc(missing, func(pattern string, _ *route) bool {
		path := strings.TrimSuffix(strings.TrimPrefix(pattern, "GET "), "{$}")
		return page.Public(path) || strings.HasPrefix(path, "/openapi") && path != "/openapi.json" // other forms of it
	})
	for line := range strings.Lines(log.String()) {
		var call struct {
			Method, Route string
			Status        int
		}
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			t.Fatal(err)
		}
		if call.Status == http.StatusOK {
			delete(missing, call.Method+" "+call.Route)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// The guide's command installs the client where there is no network, but a setuptools as pyproject.toml wants.
func TestPythonInstall(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`(pip install cmd/\\S+)`").FindStringSubmatch(string(guide))
	if command == nil {
		t.Fatal("the guide does not say how to install the client")
	}
	if err := exec.Command("/usr/bin/python3", "-c", "import ensurepip, setuptools as s; assert int(s.__version__.split('.')[0]) >= 61").Run(); err != nil {
		spectest.Lacks(t, "no /usr/bin/python3 with venv and setuptools from 61 on: ", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "cmd/server/clients/python"), os.DirFS("clients/python")); err != nil { // a build writes there
		t.Fatal(err)
	}
	script := "/usr/bin/python3 -m venv --system-site-packages env; . env/bin/activate; " + command[1] +
		"; cd env; python -c 'import pacer; print(pacer.__file__, pacer.Client, open(pacer.__path__[0] + \"/py.typed\"))'"
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PIP_NO_INDEX=1", "PIP_NO_BUILD_ISOLATION=0", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_CACHE_DIR=1") // 0 = no isolation
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), filepath.Join(dir, "env")) {
		t.Errorf("%s: %v\n%s", command[1], err, out)
	}
}

// pythonExample is the program in docs/guides/serve.md.
var pythonExample = regexp.MustCompile("(?s)\n```python\n(.*?)```\n")

// The program of docs/guides/serve.md prints what the comments behind its lines say.
func TestPythonExample(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	program := pythonExample.FindStringSubmatch(string(guide))
	if program == nil {
		t.Fatal("the guide has no example in Python")
	}
	web := httptest.NewServer(newServer(t, Options{}).Handler())
	defer web.Close()
	var want strings.Builder
	for _, m := range regexp.MustCompile(`(?m)print\(.*\)  # (.*)$`).FindAllStringSubmatch(program[1], -1) {
		want.WriteString(m[1] + "\n")
	}
	got := python(t, nil, "-c", strings.ReplaceAll(program[1], "http://127.0.0.1:8470", web.URL))
	if got != want.String() || got == "" {
		t.Errorf("the example prints\n%s\nand the guide says\n%s", got, &want)
	}
}
