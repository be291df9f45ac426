package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// request sends a request with headers, given as names and values in turn.
func request(s *Server, method, url, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	checkContract(s, r, w)
	return w
}

// newScopedServer returns a server, and for each scope the secret of a token that has it alone.
func newScopedServer(t *testing.T) (s *Server, secrets map[string]string, tokens []access.Token) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.json")
	secrets = map[string]string{}
	for _, scope := range access.Scopes() {
		tok, secret, err := access.NewToken(scope, []string{scope}, time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		tokens, secrets[scope] = append(tokens, tok), secret
	}
	if err := access.WriteTokens(file, tokens); err != nil {
		t.Fatal(err)
	}
	return newServer(t, Options{TokensFile: file}), secrets, tokens
}

// Each route wants its scope, and none answers without one. The routes are those of the
// route table.
func TestScopes(t *testing.T) {
	s, secrets, tokens := newScopedServer(t)
	wants := map[string]string{"POST /v1/measurements": access.ScopeIngest, "POST /v1/campaigns": access.ScopeIngest, "POST /v1/fit": access.ScopeFit, "GET /v1/backup": access.ScopeAdmin, "DELETE /v1/measurements": access.ScopeAdmin,
		"POST /v1/store/verify": access.ScopeAdmin, "POST /v1/store/compact": access.ScopeAdmin, "POST /v1/simulations": access.ScopeFit, "DELETE /v1/simulations/{id}": access.ScopeFit}
	routes := 0
	for pattern := range s.router.routes {
		method, path, _ := strings.Cut(pattern, " ")
		want := wants[pattern]
		if want == "" {
			want = access.ScopeRead
		}
		for scope, secret := range secrets {
			w := request(s, method, "http://pacer.example"+path, "", "Authorization", "Bearer "+secret)
			allowed := scope == want || scope == access.ScopeAdmin || public(path)
			if refused := w.Code == http.StatusForbidden; refused == allowed || w.Code == http.StatusUnauthorized {
				t.Errorf("%s with scope %s: %d %.200s", pattern, scope, w.Code, w.Body)
			}
		}
		routes++
	}
	if routes < 20 {
		t.Errorf("%d routes", routes)
	}
	for _, bad := range []string{"", "Bearer", "Bearer x", "Basic " + secrets[access.ScopeAdmin], "Bearer " + tokens[0].SHA256, "Bearer " + secrets[access.ScopeRead] + "x"} {
		if w := request(s, http.MethodGet, "http://pacer.example/v1/models", "", "Authorization", bad); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("authorization %q: %d", bad, w.Code)
		}
	}
}

// A token is revoked, and another is valid, while the server runs. A file that cannot be
// read leaves the tokens as they are.
func TestTokensRotate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	first, secret, err := access.NewToken("first", []string{access.ScopeRead}, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	second, later, err := access.NewToken("second", []string{access.ScopeRead}, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := access.WriteTokens(file, []access.Token{first}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Options{TokensFile: file})
	changed := time.Now()
	status := func(secret string) int {
		return request(s, http.MethodGet, "http://localhost/v1/cards", "", "Authorization", "Bearer "+secret).Code
	}
	touch := func() {
		changed = changed.Add(time.Second) // a file system may keep whole seconds
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + 10*time.Millisecond) // the server looks at the file once a second
	}
	if a, b := status(secret), status(later); a != 200 || b != 401 {
		t.Errorf("%d and %d, want 200 and 401", a, b)
	}
	if err := access.WriteTokens(file, []access.Token{second}); err != nil {
		t.Fatal(err)
	}
	touch()
	if a, b := status(secret), status(later); a != 401 || b != 200 {
		t.Errorf("after the rotation: %d and %d, want 401 and 200", a, b)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch()
	if a, b := status(secret), status(later); a != 401 || b != 200 {
		t.Errorf("a damaged file: %d and %d, want 401 and 200", a, b)
	}
	if err := access.WriteTokens(file, []access.Token{{Name: "old", SHA256: second.SHA256, Scopes: second.Scopes, Created: second.Created, Expires: time.Now().Add(-time.Second)}}); err != nil {
		t.Fatal(err)
	}
	touch()
	if a := status(later); a != 401 {
		t.Errorf("an expired token: %d", a)
	}
}

// No page of another site is answered, whatever the method; hosts are those allowed.
func TestCrossSite(t *testing.T) {
	s := newServer(t, Options{AllowedHosts: []string{"pacer.lab"}})
	for _, c := range []struct {
		url     string
		headers []string
		status  int
	}{
		{"http://localhost/v1/cards", nil, 200},
		{"http://pacer.lab:8470/v1/cards", nil, 200},
		{"http://evil.example/v1/cards", nil, 403},
		{"http://localhost/v1/cards", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"http://localhost/v1/cards", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"http://localhost/v1/cards", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"http://localhost/v1/cards", []string{"Sec-Fetch-Site", "none"}, 200},
		{"http://localhost/v1/cards", []string{"Origin", "http://evil.example"}, 403},
		{"http://localhost/v1/cards", []string{"Origin", "null"}, 403},
		{"http://localhost/v1/cards", []string{"Origin", "http://localhost"}, 200},
		{"http://localhost/healthz", []string{"Origin", "http://evil.example"}, 403},
	} {
		if w := request(s, http.MethodGet, c.url, "", c.headers...); w.Code != c.status {
			t.Errorf("%s %q: %d, want %d", c.url, c.headers, w.Code, c.status)
		}
	}
}

// Names with invisible characters, or that are not in normal form, are refused by name;
// the last lines of a log may have any.
func TestNamesArePlain(t *testing.T) {
	s := newServer(t, Options{})
	const row = `{"measurements":[{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3","shape":"8"},"outcome":"failed","reason":"line\n\u202eline","source":%s}]}`
	for source, status := range map[string]int{`"lab"`: 200, `"lab\u202e"`: 422, `"lab\u0000"`: 422, `"e\u0301"`: 422, `"\u00e9"`: 200, `"a\nb"`: 422} {
		w := do(s, http.MethodPost, "/v1/measurements", fmt.Sprintf(row, source))
		if w.Code != status || status == 422 && !strings.Contains(w.Body.String(), "body.measurements[0].source") {
			t.Errorf("source %s: %d %s", source, w.Code, w.Body)
		}
	}
	if w := do(s, http.MethodPost, "/v1/predict", `{"model":"llama3-8b\u202e","accelerator":"h100","plan":"dp=8"}`); w.Code != 422 {
		t.Errorf("a model: %d %s", w.Code, w.Body)
	}
	at := strings.Replace(fmt.Sprintf(row, `"lab"`), `"outcome"`, `"at":"2999-01-01T00:00:00Z","outcome"`, 1)
	if w := do(s, http.MethodPost, "/v1/measurements", at); w.Code != 422 || !strings.Contains(w.Body.String(), "2999") {
		t.Errorf("a time of 2999: %d %s", w.Code, w.Body)
	}
}

// A backup over HTTP is whole, and an export has the selected rows.
func TestStreams(t *testing.T) {
	s := newServer(t, Options{MaxAnswer: 100})
	rows := measured(t, s, 1)
	if _, err := s.db.PutAll(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(path, do(s, http.MethodGet, "/v1/backup", "").Body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckBackup(path); err != nil {
		t.Error(err)
	}
	for format, read := range map[string]func(string) iter.Seq2[spec.Measurement, error]{"arrow": rowfile.ReadArrow, "parquet": rowfile.ReadParquet} {
		for query, want := range map[string]int{"": len(rows), "&model=llama3-8b": len(rows), "&source=nosuch": 0} {
			w := do(s, http.MethodGet, "/v1/measurements/export?format="+format+query, "")
			if err := os.WriteFile(path, w.Body.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range read(path) {
				if n++; err != nil {
					t.Fatalf("%s%s: %v", format, query, err)
				}
			}
			if n != want || w.Code != http.StatusOK {
				t.Errorf("%s%s: %d, %d rows, want %d", format, query, w.Code, n, want)
			}
		}
	}
	for _, query := range []string{"format=csv", "colour=x"} {
		if w := do(s, http.MethodGet, "/v1/measurements/export?"+query, ""); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	for range maxStreams {
		s.router.streams <- struct{}{}
	}
	if w := do(s, http.MethodGet, "/v1/backup", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a stream too many: %d", w.Code)
	}
}

// Each request is a JSON line with the trace id of the client; a failed one is logged
// with it too.
func TestAccessLog(t *testing.T) {
	var accessLog, log bytes.Buffer
	s := newServer(t, Options{AccessLog: slog.New(slog.NewJSONHandler(&accessLog, nil)), Log: slog.New(slog.NewTextHandler(&log, nil)), Timeout: time.Nanosecond})
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	w := request(s, http.MethodPost, "http://localhost/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`, "Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	var line struct {
		ID, Method, Route, Path string
		Status                  int
		Bytes                   int
		Seconds                 float64
	}
	if err := json.Unmarshal(accessLog.Bytes(), &line); err != nil || line.ID != id || line.Route != "/v1/plan" || line.Status != w.Code || line.Bytes != w.Body.Len() || line.Seconds <= 0 {
		t.Errorf("%v: %s", err, &accessLog)
	}
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("X-Request-Id") != id || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "deadline") {
		t.Errorf("%d, %q, log %s", w.Code, w.Header().Get("X-Request-Id"), &log)
	}
	if other := request(s, http.MethodGet, "http://localhost/healthz", "", "Traceparent", "00-xyz").Header().Get("X-Request-Id"); len(other) != 32 || other == id {
		t.Errorf("a new id: %q", other)
	}
}

// The audit log has the requests that fit, copy or delete, also those that are refused, with the name of the token,
// which is the client of those that it allows.
func TestAuditLog(t *testing.T) {
	var audit bytes.Buffer
	s, secrets, _ := newScopedServer(t)
	s.o.AuditLog = slog.New(slog.NewJSONHandler(&audit, nil))
	ask := func(scope, method, path, body string) int {
		return request(s, method, "http://localhost"+path, body, "Authorization", "Bearer "+secrets[scope]).Code
	}
	var want []string
	for _, c := range []struct {
		scope, method, path, body string
		logged                    bool
	}{
		{access.ScopeRead, "GET", "/v1/models", "", false},
		{access.ScopeRead, "POST", "/v1/predict", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`, false},
		{access.ScopeFit, "POST", "/v1/fit", "{}", true},
		{access.ScopeAdmin, "DELETE", "/v1/measurements?source=none", "", true},
		{access.ScopeAdmin, "GET", "/v1/backup", "", true},
		{access.ScopeIngest, "DELETE", "/v1/measurements?source=lab", "", true},
	} {
		status := ask(c.scope, c.method, c.path, c.body)
		if c.logged {
			path, query, _ := strings.Cut(c.path, "?")
			client := c.scope
			if status == http.StatusForbidden {
				client = "192.0.2.1" // of httptest
			}
			want = append(want, fmt.Sprint(c.scope, client, c.method, path, query, status))
		}
	}
	var got []string
	for line := range strings.Lines(audit.String()) {
		var l struct {
			ID, Token, Client, Method, Path, Query string
			Status                                 int
			Time                                   time.Time
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.ID) != 32 || l.Time.IsZero() {
			t.Errorf("%v: %s", err, line)
		}
		got = append(got, fmt.Sprint(l.Token, l.Client, l.Method, l.Path, l.Query, l.Status))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
