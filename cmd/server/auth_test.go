package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	s := newServer(t, Options{Token: "secret"})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "Basic secret", 401}, {"/v1/models", "Bearer secret2", 401},
		{"/v1/models", "Bearer secret", 200}, {"/v1/models", "bearer secret", 200}, {"/metrics", "", 401}, {"/openapi.json", "", 401},
		{"/nosuch", "", 401}, {"/healthz", "", 200}, {"/readyz", "", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://far.example"+c.path, nil)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		checkContract(s, r, w)
		if w.Code != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.header, w.Code, c.status)
		}
	}
}

// Without a token, pages of other sites are refused, by DNS rebinding and by
// cross-site requests.
func TestOtherSitesAreRefused(t *testing.T) {
	s := newServer(t, Options{})
	for _, c := range []struct {
		host, site string
		status     int
	}{{"localhost", "", 200}, {"127.0.0.1:8470", "", 200}, {"[::1]:8470", "", 200}, {"evil.example", "", 403}, {"localhost.evil.example:80", "", 403}, {"localhost", "cross-site", 403}} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/predict", strings.NewReader(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}`))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		checkContract(s, r, w)
		if w.Code != c.status {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}
