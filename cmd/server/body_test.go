package server

import (
	"net/http"
	"testing"
)

// TestMediaTypes: a body has the same answer under every spelling of the type of JSON, and none under another type,
// whether it is plain, and read without its schema, or not. The answer is JSON whatever the client accepts.
func TestMediaTypes(t *testing.T) {
	s := newServer(t, Options{})
	for kind, status := range map[string]int{
		"": 200, "application/json": 200, "Application/JSON": 200, "application/json; charset=utf-8": 200, " application/json ;x=y": 200,
		"text plain": 415, "text/plain": 415, "json": 415, "application/problem+json": 415, "application/json+json": 415,
		"application/json;=": 415, "application/json; x=1; x=2": 415, "\x00": 415,
	} {
		for _, accept := range []string{"", "json", "application/json", "application/problem+json", "text/html", "json;q=1, */*;q=0.1"} {
			for _, body := range []string{
				`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`,
				`{"Model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`, // not plain
			} {
				w := request(s, http.MethodPost, "http://localhost/v1/predict", body, "Content-Type", kind, "Accept", accept)
				want := "application/json"
				if status != http.StatusOK {
					want = "application/problem+json"
				}
				if got := w.Header().Get("Content-Type"); w.Code != status || got != want {
					t.Errorf("content type %q, accept %q: %d %q, want %d %q: %s", kind, accept, w.Code, got, status, want, w.Body)
				}
			}
		}
	}
	for _, path := range []string{"/v1/models", "/v1/simulations"} {
		if w := request(s, http.MethodGet, "http://localhost"+path, "", "Accept", "json"); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %q", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
}
