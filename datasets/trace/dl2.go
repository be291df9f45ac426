package trace

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// dl2Trace describes the simulator of these jobs.
var dl2Trace = Format{
	License: "none stated",
	URL:     "https://github.com/pengyanghua/DL2",
	Commit:  "2e54920d2100bff2e14e246c423419bbd326c55b",
}

// dl2Types is indexed by the number of the type, less one.
var dl2Types = datasets.DL2Types()

const (
	dl2Slot        = 20 * time.Minute
	dl2TestbedSlot = 5 * time.Minute
)

// readDL2Workload reads the jobs of one trace of a table. in.trace is CONFIG/TRACE, by the columns
// config and trace, "" = the only one. A slot is 20 minutes, or 5 for configurations with a
// name that begins with testbed.
func readDL2Workload(in *input) iter.Seq2[spec.Job, error] {
	columns := []string{"config", "trace", "job", "arrival_slot", "type", "model", "epochs"}
	return func(yield func(spec.Job, error) bool) {
		ids, want := jobIDs{column: "job"}, in.trace
		var seen []string
		for rec, err := range table.Read(in.reader, in.name, columns...) {
			if in.ctx.Err() != nil {
				yield(spec.Job{}, in.ctx.Err())
				return
			}
			if err != nil {
				if !yield(spec.Job{}, err) {
					return
				}
				continue
			}
			trace := rec.Str("config") + "/" + rec.Str("trace")
			if !slices.Contains(seen, trace) {
				seen = append(seen, strings.Clone(trace))
			}
			if in.trace == "" && len(seen) > 1 {
				yield(spec.Job{}, fmt.Errorf("datasets: %s: holds several traces, %s and %s among them: name one, as FILE:dl2=%s", in.name, seen[0], seen[1], seen[0]))
				return
			}
			if want != "" && trace != want {
				continue
			}
			r := &record{Record: rec}
			if !ids.yield(r, dl2Job(r), yield) {
				return
			}
		}
		if in.trace != "" && !slices.Contains(seen, in.trace) {
			yield(spec.Job{}, fmt.Errorf("datasets: %s: holds no trace %s, there are: %s", in.name, in.trace, strings.Join(seen, ", ")))
		}
	}
}

// dl2Job reads one row.
func dl2Job(rec *record) spec.Job {
	kind, epochs, slot := rec.Count("type"), rec.Count("epochs"), dl2Slot
	rec.Need("arrival_slot")
	id := rec.Need("job")
	if strings.HasPrefix(rec.Str("config"), "testbed") {
		slot = dl2TestbedSlot
	}
	switch {
	case kind < 1 || kind > len(dl2Types):
		rec.Fail("type", fmt.Errorf("is not one of 1..%d", len(dl2Types)))
	case rec.Need("model") != dl2Types[kind-1].Model:
		rec.Fail("model", fmt.Errorf("is not that of type %d, %s", kind, dl2Types[kind-1].Model))
	case epochs < 1:
		rec.Fail("epochs", errors.New("is missing or 0"))
	}
	if rec.Err() != nil {
		return spec.Job{}
	}
	return dl2Types[kind-1].Job(id, time.Duration(rec.Count("arrival_slot"))*slot, epochs)
}
