package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	pageparts "github.com/pacer-ml/pacer/planner/report/page"
)

//go:embed assets
var assets embed.FS

// Prefix is the path below which all files but the page itself are.
const Prefix = "/page/"

// policy is the content security policy of the page: everything comes from the server
// itself, no script and no style is inline, and no text becomes markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are the media types of files, by extension.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

// File is one file of the page. It serves itself.
type File struct {
	Path       string // such as /page/main.js
	kind, etag string
	body, gzip []byte
}

// Files returns the files of the page, that of path / first. They are compressed once.
var Files = sync.OnceValue(files)

func files() []*File {
	out := []*File{newFile("/", ".html", read("index.html")),
		newFile(Prefix+"style.css", ".css", []byte(pageparts.PlanStyle(string(read("page.css"))))),
		newFile(Prefix+"uplot.js", ".js", []byte(pageparts.PlotModule())),
		newFile(Prefix+"charts.js", ".js", []byte(pageparts.Charts)),
		newFile(Prefix+"schedules.js", ".js", []byte(pageparts.ScheduleModule()))}
	names, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, name := range names {
		if name = path.Base(name); !slices.Contains(localOnly, name) {
			out = append(out, newFile(Prefix+name, ".js", read(name)))
		}
	}
	return out
}

func read(name string) []byte {
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return b
}

func newFile(path, ext string, body []byte) *File {
	sum := sha256.Sum256(body)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return &File{Path: path, kind: types[ext], etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body: body, gzip: packed.Bytes()}
}

// Pattern is the pattern of the file's route, without a method.
func (f *File) Pattern() string {
	if f.Path == "/" {
		return "/{$}"
	}
	return f.Path
}

// Public reports whether path is that of a file, which has no secrets and needs no token.
func Public(path string) bool { return path == "/" || strings.HasPrefix(path, Prefix) }

// ServeHTTP answers with the file, compressed where the client accepts gzip. A client that
// has it already gets 304.
func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // ask each time: a new version of pacer has other files
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.body
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		body = f.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // the client may have disconnected
}

// acceptsGzip reports whether values of Accept-Encoding name gzip with a quality above 0.
func acceptsGzip(values []string) bool {
	for _, coding := range strings.Split(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		quality := 1.0
		if _, q, ok := strings.Cut(params, "q="); ok {
			if _, err := fmt.Sscanf(q, "%g", &quality); err != nil {
				return false
			}
		}
		return quality > 0
	}
	return false
}
