package hook

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Process is what one process of the program wrote. Times are in seconds, memory in bytes.
type Process struct {
	Node       string `json:"node"` // of NodeVar, "" without
	PID        int    `json:"pid"`
	Rank       int    `json:"rank"`
	World      int    `json:"world"` // processes of the job, by torch.distributed or the launcher
	Torch      string `json:"torch"` // versions
	CUDA       string `json:"cuda"`  // "" without
	Python     string `json:"python"`
	Device     string `json:"device"`      // type of torch's device: "cuda", "cpu", "xla", "hpu" ...
	DeviceName string `json:"device_name"` // "" on CPUs
	Optimizer  string `json:"optimizer"`   // class of the first optimizer that was stepped
	// Parameters is the number of elements of that optimizer, a share where it shards.
	Parameters float64 `json:"parameters"`

	Steps []Step `json:"-"`
	// PeakBytes is the peak memory of tensors, ReservedBytes that of the allocator. On CPUs they are the growth of the
	// resident set since torch was imported, and the whole resident set; on other devices 0, unknown.
	PeakBytes     float64  `json:"-"`
	ReservedBytes float64  `json:"-"`
	HookSec       float64  `json:"-"` // CPU time of the hook itself, without its start
	Ended         bool     `json:"-"` // the program ended by itself
	Error         string   `json:"-"` // exception that ended it
	OOM           bool     `json:"-"` // that exception says that memory ran out
	Faults        []string `json:"-"` // errors of the hook itself
}

// Step is one training step of a process.
type Step struct {
	N         int     `json:"n"`     // from 1
	Sec       float64 `json:"sec"`   // since the end of step N-1 on the device's clock; 0 = unknown
	Host      float64 `json:"host"`  // the same on the host's clock
	End       float64 `json:"end"`   // Unix time
	Calls     int     `json:"calls"` // of optimizers
	Backwards int     `json:"backwards"`
	Clock     string  `json:"clock"` // "cuda" or "host"
}

// line is one line of a file.
type line struct {
	Event   string `json:"event"`
	Version int    `json:"version"`
	Step
	Allocated float64 `json:"allocated"`
	Reserved  float64 `json:"reserved"`
	Hook      float64 `json:"hook"`
	Where     string  `json:"where"`
	Error     string  `json:"error"`
	OOM       bool    `json:"oom"`
}

// version is the version of the lines that this package reads.
const version = 1

// Limits of one file.
const (
	maxLine  = 1 << 20
	maxSteps = 10_000_000
)

// Read reads the files in a directory that Out returned, in order of rank, then of process id. There are none if no
// process stepped an optimizer. A last line that is not complete is ignored: its process was killed or still writes.
func Read(dir string) ([]Process, error) {
	files, err := filepath.Glob(filepath.Join(dir, "rank*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	var all []Process
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("hook: %w", err)
		}
		p, err := readProcess(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("hook: %s: %w", filepath.Base(file), err)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Process) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID)) })
	return all, nil
}

func readProcess(r io.Reader) (Process, error) {
	var p Process
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return p, nil
		case err != nil:
			return p, fmt.Errorf("line %d: %w", n, err)
		}
		if err := p.add(text); err != nil {
			return p, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// add adds one line.
func (p *Process) add(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line of the hook: %w", err)
	}
	for _, v := range []float64{l.Sec, l.Host, l.End, l.Allocated, l.Reserved, l.Hook} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("value %g is not finite and >= 0", v)
		}
	}
	p.PeakBytes, p.ReservedBytes = max(p.PeakBytes, l.Allocated), max(p.ReservedBytes, l.Reserved)
	p.HookSec = max(p.HookSec, l.Hook)
	switch l.Event {
	case "start":
		if l.Version != version {
			return fmt.Errorf("version %d, want %d", l.Version, version)
		}
		if err := json.Unmarshal(text, p); err != nil {
			return err
		}
	case "step":
		if l.N != len(p.Steps)+1 || l.N > maxSteps {
			return fmt.Errorf("step %d follows step %d", l.N, len(p.Steps))
		}
		p.Steps = append(p.Steps, l.Step)
	case "fault":
		p.Faults = append(p.Faults, l.Where+": "+strings.TrimSpace(l.Error))
	case "end":
		p.Ended, p.Error, p.OOM = true, l.Error, l.OOM
	}
	return nil
}
