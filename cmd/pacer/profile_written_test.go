package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// TestReadsWrittenCampaign continues a campaign that an earlier program began:
// testdata/written has its file, and its store after 8 points.
func TestReadsWrittenCampaign(t *testing.T) {
	data := t.TempDir()
	unpackStore(t, "testdata/written/store.tar.gz", filepath.Join(data, "store"))
	pacer := func(to any, verb string, args ...string) {
		t.Helper()
		var out, log bytes.Buffer
		all := append([]string{"pacer", "profile", verb, "testdata/written/campaign.yaml", "--data", data, "--assume", "8xH100", "--output", "json"}, args...)
		if code := run(t.Context(), all, nil, &out, &log); code != fail.OK {
			t.Fatalf("exit code %d: %s", code, log.String())
		}
		if err := json.Unmarshal(out.Bytes(), to); err != nil {
			t.Fatal(err)
		}
	}
	type point struct{ Plan string }
	type state struct {
		Done, Points int
		Next         []point
	}
	var got state
	pacer(&got, "explain", "--next", "2")
	want := state{8, 57, []point{{"dp=2,tp=2,pp=1,mb=1,ga=1,precision=bf16"}, {"dp=4,tp=1,pp=1,mb=2,ga=1,precision=bf16"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after 8 points (-want +got):\n%s", diff)
	}
	var after struct{ Points int }
	if pacer(&after, "run", "--max-points", "9"); after.Points != 9 {
		t.Errorf("%d points are done after one more, want 9", after.Points)
	}
}

// unpackStore writes the files of a store that was archived to dir.
func unpackStore(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		b, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
