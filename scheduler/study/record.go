package study

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// Record is the stored result of one run.
type Record struct {
	Key     string         `json:"key"`
	Run     string         `json:"run"` // description of the run, for readers
	Summary report.Summary `json:"summary"`
	Bounds  Bounds         `json:"bounds"`
	// Ends has the completions of guaranteed jobs that count, in seconds. Jobs that
	// did not finish are missing.
	Ends map[spec.JobID]report.Number `json:"ends_s,omitempty"`
}

// recordVersion is part of every key. It changes with the meaning of a record.
const recordVersion = "pacer study record 3"

// keyOf returns the content hash of everything that a run depends on: the cluster, the
// jobs, and words for the rest, such as the policy, its options, seeds, and digests of
// truth, belief and program.
func keyOf(cl spec.Cluster, jobs []spec.Job, words []string) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range []any{recordVersion, words, cl, len(jobs)} {
		if err := enc.Encode(part); err != nil {
			return "", fmt.Errorf("study: %w", err)
		}
	}
	for i := range jobs {
		if err := enc.Encode(&jobs[i]); err != nil {
			return "", fmt.Errorf("study: job %s: %w", jobs[i].ID, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Dir stores records in a directory, a file each, named by key. Files are written
// atomically and durably.
type Dir struct{ path string }

// OpenDir opens a directory of records and creates it if needed. It removes temporary
// files older than an hour, which killed writers leave.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	atomicfile.Sweep(path)
	return &Dir{path}, nil
}

func (d *Dir) file(key string) string { return filepath.Join(d.path, key+".json") }

// Get returns the record of a key, false if there is none or its file is damaged.
func (d *Dir) Get(key string) (Record, bool, error) {
	b, err := os.ReadFile(d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("study: %w", err)
	}
	r, err := decodeRecord(b)
	if err != nil || r.Key != key {
		return Record{}, false, nil
	}
	return r, true, nil
}

// Put stores r durably, and returns it as Get will, with figures of nine decimals.
func (d *Dir) Put(r Record) (Record, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, fmt.Errorf("study: %w", err)
	}
	if err := atomicfile.WriteBytes(d.file(r.Key), 0o644, append(b, '\n')); err != nil {
		return r, fmt.Errorf("study: %w", err)
	}
	return decodeRecord(b)
}

func decodeRecord(b []byte) (Record, error) {
	var r Record
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("study: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("study: unexpected data after the record")
	}
	return r, nil
}
