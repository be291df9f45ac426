package answercache

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// WithETag gives the answers of next an ETag, a hash of the content before it is
// compressed and so a weak one, and answers 304 to a client that has it.
//
// Source: RFC 9110, sections 8.8.3 and 13.1.2.
func WithETag(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kept := &keptAnswer{ResponseWriter: w, status: http.StatusOK}
		next(kept, r)
		if kept.status == http.StatusOK {
			sum := sha256.Sum256(kept.body.Bytes())
			tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
			w.Header().Set("ETag", tag)
			if hasTag(r.Header.Values("If-None-Match"), tag) {
				w.Header().Del("Content-Type")
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		w.WriteHeader(kept.status)
		_, _ = w.Write(kept.body.Bytes()) // the client may have disconnected
	}
}

// hasTag reports whether values of If-None-Match have a tag, weak or strong.
func hasTag(values []string, tag string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(values, ","), ","), func(v string) bool {
		v = strings.TrimSpace(v)
		return v == "*" || strings.TrimPrefix(v, "W/") == strings.TrimPrefix(tag, "W/")
	})
}

// keptAnswer keeps an answer back.
type keptAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(b []byte) (int, error) { return k.body.Write(b) }
