package server

import (
	"net/http"
	"strings"
	"testing"
)

// A list that a client has is not sent again, until it changes.
func TestETags(t *testing.T) {
	s := newServer(t, Options{})
	for _, pattern := range tagged {
		path := strings.TrimPrefix(pattern, "GET ")
		first := request(s, http.MethodGet, "http://localhost"+path, "")
		tag := first.Header().Get("ETag")
		if first.Code != http.StatusOK || len(tag) < 20 || !strings.HasPrefix(tag, `W/"`) {
			t.Fatalf("%s: %d, ETag %s", path, first.Code, tag)
		}
		for _, has := range []string{tag, `"other", ` + tag, strings.TrimPrefix(tag, "W/"), "*"} {
			if w := request(s, http.MethodGet, "http://localhost"+path, "", "If-None-Match", has); w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
				t.Errorf("%s, which the client has as %s: %d, %d bytes", path, has, w.Code, w.Body.Len())
			}
		}
		if w := request(s, http.MethodGet, "http://localhost"+path, "", "If-None-Match", `"other"`); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	before := do(s, http.MethodGet, "/v1/cards", "").Header().Get("ETag")
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 1.5)}))
	post[FitResponse](t, s, "/v1/fit", `{}`)
	if w := request(s, http.MethodGet, "http://localhost/v1/cards", "", "If-None-Match", before); w.Code != http.StatusOK || w.Header().Get("ETag") == before {
		t.Errorf("after a fit: %d", w.Code)
	}
}
