package standby

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/access"
)

// Checks are answered until another server takes the listener over, which no client notices.
func TestServe(t *testing.T) {
	const secret = "a-token-of-many-characters"
	for _, network := range []string{"tcp", "unix"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(t.TempDir(), "socket")
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		tokens, err := access.Load(secret, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial(network, l.Addr().String()) }}, Timeout: 10 * time.Second}
		ask := func(method, path, token string) (int, string, http.Header) {
			t.Helper()
			r, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(text), res.Header
		}

		stop := Serve(l.(Listener), &Options{Why: "it waits for something", Tokens: tokens, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
		for _, c := range []struct {
			method, path, token string
			status              int
			says                string
		}{
			{http.MethodGet, "/healthz", "", 200, "ok\n"}, {http.MethodGet, "/readyz", "", 503, "it waits for something"},
			{http.MethodPost, "/v1/measurements", secret, 503, "it waits for something"}, {http.MethodGet, "/metrics", secret, 200, "pacer_standby_seconds "},
			{http.MethodGet, "/metrics", "wrong", 401, "token"},
		} {
			status, text, header := ask(c.method, c.path, c.token)
			if status != c.status || !strings.Contains(text, c.says) || status == 503 && header.Get("Retry-After") != retryAfter {
				t.Errorf("%s: %d %s, Retry-After %q", c.path, status, text, header.Get("Retry-After"))
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		go func() { //nolint:gosec // it ends with the test
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answered") }))
		}()
		if status, text, _ := ask(http.MethodGet, "/v1/models", ""); status != 200 || text != "answered" {
			t.Errorf("the server after it: %d %s", status, text)
		}
	}
}
