package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Rounds are recorded decisions by time.
type Rounds map[time.Duration]map[spec.JobID]Row

// Row is the state of a job after a decision.
type Row struct {
	Accelerator string // empty without devices
	Devices     int
	Batch       int     // samples per step
	Accum       int     // micro-batches per step, including the last
	Epoch       int     // counts from 0
	Progress    float64 // steps at the initial batch
}

// columns are the columns of a record.
var columns = []string{"time", "name", "gpu", "gpus", "batch_size", "accum_steps", "epoch", "progress"}

// Read reads a CSV file with one row per job and round and the columns time (s), name, gpu (empty = none), gpus,
// batch_size, accum_steps (micro-batches before the last), epoch and progress. accelerator maps a gpu to its name in
// the cluster. Errors name file, line and value.
func Read(r io.Reader, file string, accelerator func(gpu string) (string, error)) (Rounds, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", file, err)
	}
	at := make([]int, len(columns))
	for i, c := range columns {
		if at[i] = slices.Index(header, c); at[i] < 0 {
			return nil, fmt.Errorf("replay: %s: no column %s", file, c)
		}
	}
	out := Rounds{}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("replay: %s: %w", file, err) // names the line
		}
		if err := out.add(record, at, accelerator); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("replay: %s:%d: %w", file, line, err)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("replay: %s: no rounds", file)
	}
	return out, nil
}

// Jobs returns the recorded jobs, sorted.
func (o Rounds) Jobs() []spec.JobID {
	seen := map[spec.JobID]bool{}
	for _, rows := range o {
		for id := range rows {
			seen[id] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// maxSeconds limits the time of a round, about 30 years.
const maxSeconds = 1e9

// add reads a row.
func (o Rounds) add(record []string, at []int, accelerator func(string) (string, error)) (err error) {
	number := func(column int, whole bool) float64 {
		text := record[at[column]]
		v, wrong := strconv.ParseFloat(text, 64)
		if err == nil && (wrong != nil || !(v >= 0 && v < 1e15) || whole && v != math.Trunc(v)) {
			err = fmt.Errorf("%s %q is not a number of at least 0", columns[column], text)
		}
		return v
	}
	var row Row
	if number(0, true) > maxSeconds {
		err = fmt.Errorf("time %q is above %g s", record[at[0]], maxSeconds)
	}
	now, job := time.Duration(number(0, true))*time.Second, spec.JobID(record[at[1]])
	if gpu := record[at[2]]; gpu != "" {
		row.Devices = int(number(3, true))
		var unknown error
		row.Accelerator, unknown = accelerator(gpu)
		switch {
		case err != nil:
		case unknown != nil:
			err = unknown
		case row.Devices < 1:
			err = fmt.Errorf("gpus %q, want at least 1", record[at[3]])
		}
	}
	row.Batch, row.Accum, row.Epoch, row.Progress = int(number(4, true)), int(number(5, true))+1, int(number(6, true)), number(7, false)
	if _, twice := o[now][job]; err == nil && twice {
		err = fmt.Errorf("job %s has two rows at %v", job, now)
	}
	if err != nil {
		return err
	}
	if o[now] == nil {
		o[now] = map[spec.JobID]Row{}
	}
	o[now][job] = row
	return nil
}
