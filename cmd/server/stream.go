package server

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/profiler/store"
)

// maxStreams bounds the backups and exports at the same time. They have no other limit
// than that of slow readers.
const maxStreams = 2

// compressedType is the content type of streams, which are compressed already.
const compressedType = "application/octet-stream"

// registerStreams adds the answers that are written while the store is read. They are
// not JSON, so they are not in the OpenAPI document.
func (s *Server) registerStreams(m *router) {
	m.stream("/v1/backup", access.ScopeAdmin, nil, func(r *http.Request) (string, func(io.Writer) error, error) {
		return "pacer.backup", func(w io.Writer) error { return s.db.Backup(r.Context(), w) }, nil
	})
	m.stream("/v1/measurements/export", access.ScopeRead, []string{"model", "accelerator", "source", "format"}, s.export)
}

// export returns the writer of the stored rows that the query selects with model,
// accelerator, source and format, arrow or parquet.
func (s *Server) export(r *http.Request) (name string, write func(io.Writer) error, err error) {
	q := r.URL.Query()
	f, err := s.resolver.StoredFilter(r.Context(), store.Filter{Models: q["model"], Accelerators: q["accelerator"], Sources: q["source"]})
	if err != nil {
		return "", nil, err
	}
	rows := s.db.Query(r.Context(), f)
	switch format := q.Get("format"); format {
	case "", string(rowfile.Arrow):
		return "measurements.arrow", func(w io.Writer) error { _, err := rowfile.WriteArrow(w, rows); return err }, nil
	case string(rowfile.Parquet):
		return "measurements.parquet", func(w io.Writer) error { _, err := rowfile.WriteParquet(w, rows); return err }, nil
	default:
		return "", nil, problem.New(http.StatusUnprocessableEntity, "", fmt.Sprintf("parameter format %q: want arrow or parquet", problem.Echo(format)))
	}
}

// stream adds an operation with an answer of any length. An answer that fails midway
// is cut off, so that no client takes it for complete, and counts as a failed request.
func (m *router) stream(path, scope string, query []string, of func(*http.Request) (name string, write func(io.Writer) error, err error)) {
	m.scopes["GET "+path], m.queries["GET "+path] = scope, query
	places := m.streams
	m.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			m.s.overloaded(w, "streams", 10*time.Second, fmt.Sprintf("%d backups and exports are running", maxStreams))
			return
		}
		name, write, err := of(r)
		if err != nil {
			requestOf(r.Context()).err = err
			problem.Write(w, problem.Of(err))
			return
		}
		response := w.(*responseWriter) // of watched
		response.most = math.MaxInt64
		w.Header().Set("Content-Type", compressedType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		out := bufio.NewWriterSize(w, 64<<10)
		if err = write(out); err == nil {
			err = out.Flush()
		}
		if err == nil {
			return
		}
		requestOf(r.Context()).err = err
		if response.sent {
			response.cut(problem.Of(err).Status)
		}
		w.Header().Del("Content-Disposition")
		problem.Write(w, problem.Of(err))
	})
}
