package worker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrNoResult means that no rank wrote a result.
var ErrNoResult = errors.New("no result")

// Result is the output of the worker. Times are in seconds, memory in bytes.
type Result struct {
	Version int          `json:"version"`
	Outcome spec.Outcome `json:"outcome"` // OK, OOM or Failed
	Reason  string       `json:"reason"`  // why the outcome is not OK
	Rank    int          `json:"rank"`    // the rank that wrote the result: 0, or the one that failed
	// FailedAt is the Unix time of the failure, 0 if OK.
	FailedAt float64 `json:"failed_at"`
	// LostPeer means that the rank failed because another rank disappeared.
	LostPeer bool `json:"lost_peer"`

	World      int     `json:"world"`      // processes
	Parameters float64 `json:"parameters"` // number of parameters of the whole model as built
	Python     string  `json:"python"`     // versions
	Torch      string  `json:"torch"`
	CUDA       string  `json:"cuda"` // "" on the CPU
	// BLAS is the CPU library of matrix products: "openblas", "mkl", "blis", "atlas" or
	// "reference"; "" = unknown, or CUDA.
	BLAS       string         `json:"blas"`
	DeviceName string         `json:"device_name"`
	Threads    int            `json:"threads"`  // CPU threads of each process
	Features   map[string]any `json:"features"` // of torch, see features.py
	// Notes names the implementations that the engine chose, such as "attention": "sdpa".
	Notes map[string]string `json:"notes"`

	SetupSec      float64   `json:"setup_s"` // from the import of torch to the first step
	WarmupSec     []float64 `json:"warmup_sec"`
	WarmupStopped string    `json:"warmup_stopped"` // "steady", "max_steps" or "max_time"
	// StepSec are the times of the timed steps, each the largest over the ranks: from a moment when every rank
	// is ready to the end of the work on its device.
	StepSec []float64 `json:"step_sec"`
	Stopped string    `json:"stopped"` // "interval", "max_steps" or "max_time"
	// HalfWidth is half the width of the median's 95 % interval as a fraction of the median, see
	// interval.py; 0 = fewer than six steps.
	HalfWidth float64 `json:"half_width"`
	Began     float64 `json:"began"` // Unix time of the first timed step
	Ended     float64 `json:"ended"` // Unix time after the last
	// PhaseSec splits the median step into "forward", "backward", "communication" (the part that does not
	// overlap computation), "wait" (for a pipeline neighbour), "optimizer" and "other"; they add up to the
	// median step. It is empty if steps are too long to run more of them.
	PhaseSec map[string]float64 `json:"phase_sec"`

	// PeakBytes is the peak memory of tensors during the timed steps, the largest over the ranks; on the CPU it
	// is the growth of the resident set since torch was imported. ReservedBytes is the memory held by the
	// allocator; on the CPU it is the whole resident set.
	PeakBytes     float64 `json:"peak_bytes"`
	ReservedBytes float64 `json:"reserved_bytes"`

	LossFirst float64 `json:"loss_first"` // of the first warm-up step; 0 = unknown
	LossLast  float64 `json:"loss_last"`  // of the last timed step
}

// Limits of plausible values.
const (
	maxResultBytes = 16 << 20
	maxSteps       = 1 << 20
	maxSeconds     = 30 * 24 * 3600
	maxBytes       = 1 << 50
)

// ReadResult reads the files that the ranks of a worker with --out wrote, and checks every field. Failures of
// ranks take precedence over the result of rank 0. Among failures, out of memory comes first and lost peers
// last; earlier failures come before later ones, which are mostly consequences. The error wraps ErrNoResult if
// there is no file, or says what is wrong with a file.
func ReadResult(out string) (Result, error) {
	failed, err := readFailures(out)
	if err != nil || len(failed) > 0 {
		if err != nil {
			return Result{}, err
		}
		return slices.MinFunc(failed, compareFailures), nil
	}
	r, err := readFile(out)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("worker: %w in %s", ErrNoResult, filepath.Base(out))
	}
	return r, err
}

// readFailures reads the files of failed ranks.
func readFailures(out string) ([]Result, error) {
	entries, err := os.ReadDir(filepath.Dir(out))
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	var all []Result
	var bad error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(out)+".rank") {
			continue
		}
		r, err := readFile(filepath.Join(filepath.Dir(out), e.Name()))
		if err == nil && r.Outcome == spec.OK {
			err = fmt.Errorf("worker: %s: outcome ok in the file of a failure", e.Name())
		}
		if err != nil {
			bad = err
			continue
		}
		all = append(all, r)
	}
	if len(all) > 0 { // one valid file of a failure is enough
		return all, nil
	}
	return nil, bad
}

// compareFailures orders failures; the first one is reported.
func compareFailures(a, b Result) int {
	last := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(last(a.Outcome != spec.OOM), last(b.Outcome != spec.OOM)),
		cmp.Compare(last(a.LostPeer), last(b.LostPeer)),
		cmp.Compare(a.FailedAt, b.FailedAt),
		cmp.Compare(a.Rank, b.Rank))
}

func readFile(file string) (Result, error) {
	f, err := os.Open(file)
	if err != nil {
		return Result{}, fmt.Errorf("worker: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxResultBytes+1))
	if err != nil {
		return Result{}, fmt.Errorf("worker: %w", err)
	}
	r, err := ParseResult(text)
	if err != nil {
		return Result{}, fmt.Errorf("worker: %s: %w", filepath.Base(file), err)
	}
	return r, nil
}

// ParseResult parses a result and checks every field.
func ParseResult(text []byte) (Result, error) {
	var r Result
	if len(text) == 0 {
		return r, errors.New("the file is empty")
	}
	if len(text) > maxResultBytes {
		return r, fmt.Errorf("more than %d bytes", maxResultBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&r); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return Result{}, fmt.Errorf("truncated after %d bytes", len(text))
		}
		return Result{}, fmt.Errorf("not a result in JSON: %w", err)
	}
	if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
		return Result{}, fmt.Errorf("%d bytes after the end of the result", len(rest))
	}
	if err := r.Validate(); err != nil {
		return Result{}, err
	}
	return r, nil
}

// Validate returns an error for the first invalid field.
func (r Result) Validate() error {
	if r.Version != Version {
		return fmt.Errorf("version %d, want %d", r.Version, Version)
	}
	switch r.Outcome {
	case spec.OOM, spec.Failed:
		if r.Reason == "" {
			return fmt.Errorf("outcome %s without a reason", r.Outcome)
		}
		return r.validateNumbers()
	case spec.OK:
	default:
		return fmt.Errorf("outcome %q is not one of ok oom failed", r.Outcome)
	}
	switch {
	case r.Rank != 0:
		return fmt.Errorf("outcome ok from rank %d, want 0", r.Rank)
	case r.World < 1:
		return fmt.Errorf("world of %d processes, want at least 1", r.World)
	case len(r.StepSec) == 0:
		return errors.New("outcome ok without a timed step")
	case r.Stopped == "" || r.WarmupStopped == "":
		return errors.New("outcome ok without the reason why steps stopped")
	case r.Ended < r.Began || r.Began <= 0:
		return fmt.Errorf("timed steps from %g to %g, want 0 < began <= ended", r.Began, r.Ended)
	}
	return r.validateNumbers()
}

func (r Result) validateNumbers() error {
	for _, s := range []struct {
		name    string
		seconds []float64
	}{{"step_sec", r.StepSec}, {"warmup_sec", r.WarmupSec}} {
		if len(s.seconds) > maxSteps {
			return fmt.Errorf("%s has %d steps, want at most %d", s.name, len(s.seconds), maxSteps)
		}
		for i, t := range s.seconds {
			if !(t > 0) || t > maxSeconds {
				return fmt.Errorf("%s[%d]=%g is not in (0, %d] seconds", s.name, i, t, maxSeconds)
			}
		}
	}
	for phase, t := range r.PhaseSec {
		if !(t >= 0) || t > maxSeconds {
			return fmt.Errorf("phase_sec[%s]=%g is not in [0, %d] seconds", phase, t, maxSeconds)
		}
	}
	for _, f := range []struct {
		name     string
		v, limit float64
	}{{"peak_bytes", r.PeakBytes, maxBytes}, {"reserved_bytes", r.ReservedBytes, maxBytes}, {"parameters", r.Parameters, 1e15},
		{"setup_s", r.SetupSec, maxSeconds}, {"half_width", r.HalfWidth, math.MaxFloat32},
		{"began", r.Began, 1e11}, {"ended", r.Ended, 1e11}, {"failed_at", r.FailedAt, 1e11}} {
		if !(f.v >= 0) || f.v > f.limit {
			return fmt.Errorf("%s=%g is not in [0, %g]", f.name, f.v, f.limit)
		}
	}
	return nil
}

// Timed returns the begin and end of the timed steps, zero times if there are none.
func (r Result) Timed() (began, ended time.Time) {
	if r.Began <= 0 || r.Ended <= 0 {
		return time.Time{}, time.Time{}
	}
	return unix(r.Began), unix(r.Ended)
}

func unix(sec float64) time.Time {
	whole, part := math.Modf(sec)
	return time.Unix(int64(whole), int64(part*1e9))
}
