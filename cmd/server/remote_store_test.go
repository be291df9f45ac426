package server

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

var _ profiler.Sink = (*remote.Client)(nil)

// A Go client on a socket stores measurements, and reads them page by page, as a file and as a backup.
func TestRemoteStore(t *testing.T) {
	s := newServer(t, Options{})
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(socket) }() // until it is closed
	defer web.Close()
	client, err := remote.New("unix:"+path, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var posted []spec.Measurement
	for i := range 150 {
		m := measured(t, s, 1)[0]
		m.StepSec, m.Source = []float64{1 + float64(i)}, []string{"a", "b"}[i%2]
		m.Config.SeqLen = 1024 + i
		posted = append(posted, m)
	}
	if err := client.Put(t.Context(), posted...); err != nil {
		t.Fatal(err)
	}
	for _, f := range []remote.Filter{{}, {Models: []string{"llama3-8b"}, Accelerators: []string{"h100"}, Sources: []string{"b"}}} {
		want := map[int]spec.Measurement{}
		for _, m := range posted {
			if len(f.Sources) == 0 || m.Source == f.Sources[0] {
				want[m.Config.SeqLen] = m
			}
		}
		paged, exported := map[int]spec.Measurement{}, map[int]spec.Measurement{}
		for m, err := range client.Rows(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			paged[m.Config.SeqLen] = m
		}
		var b bytes.Buffer
		if err := client.Export(t.Context(), &b, "parquet", f); err != nil {
			t.Fatal(err)
		}
		for m, err := range rowfile.ReadParquetFrom("export", bytes.NewReader(b.Bytes()), int64(b.Len())) {
			if err != nil {
				t.Fatal(err)
			}
			exported[m.Config.SeqLen] = m
		}
		if d := cmp.Diff(want, paged); d != "" {
			t.Errorf("%+v (-posted +paged)\n%s", f, d)
		}
		if d := cmp.Diff(paged, exported); d != "" {
			t.Errorf("%+v (-paged +exported)\n%s", f, d)
		}
	}
	var copied bytes.Buffer
	if err := client.Backup(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(file, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckBackup(file); err != nil {
		t.Error(err)
	}
	var fits FitResponse
	if err := client.Do(t.Context(), http.MethodPost, "/v1/fit", FitRequest{Sources: []string{"a"}}, &fits); err != nil || len(fits.Cards) != 1 {
		t.Errorf("%+v, %v", fits, err)
	}
}

// With patience, measurements are sent again after a lost answer and are stored once; a fit is not sent again.
func TestRemotePatience(t *testing.T) {
	s := newServer(t, Options{})
	flaky := httptest.NewServer(&lossy{Handler: s.Handler(), seen: map[string]int{}})
	defer flaky.Close()
	client, err := remote.New(flaky.URL, remote.Options{Patience: time.Minute, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Put(t.Context(), measured(t, s, 1)...); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, err := range client.Rows(t.Context(), remote.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if want := len(measured(t, s, 1)); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
	if err := client.Do(t.Context(), http.MethodPost, "/v1/fit", FitRequest{}, nil); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a fit without an answer: error %v", err)
	}
}
