package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(f *File, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, f.Path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestFiles(t *testing.T) {
	total := 0
	for _, f := range Files() {
		plain, packed := get(f), get(f, "Accept-Encoding", "br, gzip;q=0.5")
		r, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		total += packed.Body.Len()
		unpacked, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(unpacked, plain.Body.Bytes()) || len(unpacked) == 0 {
			t.Errorf("%s: the compressed file differs from the plain one (%v)", f.Path, err)
		}
		if got := get(f, "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"); got != "" {
			t.Errorf("%s: Content-Encoding %q where the client refuses gzip", f.Path, got)
		}
		again := get(f, "If-None-Match", plain.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: status %d with the file's own ETag, want 304", f.Path, again.Code)
		}
		if plain.Header().Get("Content-Type") == "" || plain.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", f.Path, plain.Header())
		}
		if !Public(f.Path) {
			t.Errorf("%s needs a token", f.Path)
		}
	}
	if most := 400 << 10; total > most || total == 0 {
		t.Errorf("all files have %d bytes with gzip, want at most %d", total, most)
	}
}

func TestPublic(t *testing.T) {
	for _, path := range []string{"", "/v1/plan", "/page", "/openapi.json", "/metrics", "//page/main.js"} {
		if Public(path) {
			t.Errorf("%q needs no token", path)
		}
	}
}

// outside matches addresses of other sites, and inline scripts and styles.
var outside = regexp.MustCompile(`(?i)(src|href|url|import|fetch)\s*[=(]?\s*["'(]\s*(https?:)?//|<script>|<style|\sstyle="|\son[a-z]+="|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)

func TestNothingFromOutside(t *testing.T) {
	for _, f := range Files() {
		if bad := outside.Find(f.body); bad != nil {
			t.Errorf("%s has %q", f.Path, bad)
		}
	}
	policy := get(Files()[0]).Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("policy %q", policy)
	}
}
