package datasets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var gavelImporter = Importer{
	Name:    "gavel",
	Doc:     "throughput of 26 job types on V100, P100 and K80, 1 to 8 devices (Narayanan et al., Gavel, OSDI 2020)",
	License: "MIT",
	URL:     "https://github.com/stanford-futuredata/gavel",
	Commit:  "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c",
	Dir:     "a clone of the repository, its folder scheduler, or the folder above the clone",
	Open:    openGavel,
}

// A throughput table is {worker type: {job: {partner: value}}}. A value is in
// training steps per second, summed over the job's devices: n devices making k
// synchronous steps per second are recorded as n·k. Measurements here count
// synchronous steps, k per second.
//
// Isolated entries (partner "null") become measurements. Entries of pairs, 10,338
// of a file's 10,830, have the throughputs of two jobs on the same devices. They
// are no step times of a Config; ReadGavelPairs reads them.

// gavelFiles finds the throughput tables in a clone of the repository (folder
// scheduler) or in a folder of copies.
func gavelFiles(root fs.FS) ([]string, error) {
	return table.Glob(root,
		"throughputs/*throughputs*.json",
		"scheduler/*throughputs*.json",
		"*throughputs*.json",
		"*/throughputs/*throughputs*.json",
		"*/scheduler/*throughputs*.json")
}

// gavelTables are the files of the data set below root.
type gavelTables struct {
	root  fs.FS
	files []string
}

func openGavel(root fs.FS) (Rows, error) {
	files, err := gavelFiles(root)
	if err != nil {
		return nil, fmt.Errorf("datasets: gavel: %w", err)
	}
	return gavelTables{root, files}, nil
}

// All yields the measurements of the isolated entries.
func (t gavelTables) All(ctx context.Context) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		for e, err := range t.entries() {
			if ctx.Err() != nil {
				yield(spec.Measurement{}, ctx.Err())
				return
			}
			var m spec.Measurement
			if err == nil {
				m, err = e.measurement()
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func (t gavelTables) Count() (int, error) {
	n := 0
	for _, err := range t.entries() {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// entries yields the isolated entries of all files.
func (t gavelTables) entries() iter.Seq2[gavelEntry, error] {
	return func(yield func(gavelEntry, error) bool) {
		for _, file := range t.files {
			data, err := fs.ReadFile(t.root, file)
			if err != nil {
				yield(gavelEntry{}, fmt.Errorf("datasets: gavel: %w", err))
				return
			}
			for e, err := range walkGavel(data, file, false) {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// gavelEntry is one throughput, isolated or of a pair.
type gavelEntry struct {
	file    string
	line    int
	worker  string // such as "v100_unconsolidated"
	job     string // such as "('ResNet-18 (batch size 64)', 4)"
	partner string // of a pair, as job; else ""
	rate    float64
	rates   [2]float64 // of a pair: the job's and the partner's
	rateErr error
	written string
}

// walkGavel yields the isolated entries of a table, or those of pairs, in file order. Invalid JSON ends it.
func walkGavel(data []byte, file string, pairs bool) iter.Seq2[gavelEntry, error] {
	return func(yield func(gavelEntry, error) bool) {
		w := &gavelWalk{dec: json.NewDecoder(bytes.NewReader(data)), data: data, file: file, pairs: pairs, yield: yield}
		if err := w.object(w.workers); err != nil && !errors.Is(err, errStop) {
			yield(gavelEntry{}, fmt.Errorf("datasets: %s:%d: %w", file, w.line(), err))
		}
	}
}

// errStop ends a walk on behalf of the consumer.
var errStop = errors.New("stop")

type gavelWalk struct {
	dec   *json.Decoder
	data  []byte
	file  string
	pairs bool // yield entries of pairs, not isolated ones
	yield func(gavelEntry, error) bool

	counted, lines int // bytes seen by line, and line ends among them
}

// line returns the current line of the decoder.
func (w *gavelWalk) line() int {
	at := int(w.dec.InputOffset())
	w.lines += bytes.Count(w.data[w.counted:at], []byte{'\n'})
	w.counted = at
	return w.lines + 1
}

// object calls f for each key of the next object.
func (w *gavelWalk) object(f func(key string) error) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("%v where an object was expected", t)
	}
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return err
		}
		if err := f(key.(string)); err != nil {
			return err
		}
	}
	_, err = w.dec.Token()
	return err
}

func (w *gavelWalk) workers(worker string) error {
	return w.object(func(job string) error {
		return w.object(func(partner string) error {
			var v json.RawMessage
			if err := w.dec.Decode(&v); err != nil {
				return err
			}
			if (partner != "null") != w.pairs {
				return nil
			}
			e := gavelEntry{file: w.file, line: w.line(), worker: worker, job: job, written: string(v)}
			if w.pairs {
				e.partner = partner
				e.rateErr = e.readPair(v)
			} else if e.rateErr = json.Unmarshal(v, &e.rate); e.rateErr != nil {
				e.rateErr = errors.New("is not a number")
			}
			if !w.yield(e, nil) {
				return errStop
			}
			return nil
		})
	})
}

var (
	gavelJobKey    = regexp.MustCompile(`^\('(.+)', ([1-9][0-9]{0,3})\)$`)
	gavelBatchSize = regexp.MustCompile(` \(batch size ([1-9][0-9]{0,6})\)$`)
)

// gavelModel returns the model of a job type such as "ResNet-50 (batch size 64)", with that name,
// and its batch per device. The batch is 1 for types without one (A3C, CycleGAN): their sample is
// one step. The shape is the catalog's if the network is the same.
func gavelModel(jobType string) (m spec.Model, batch int) {
	batch = 1
	if g := gavelBatchSize.FindStringSubmatch(jobType); g != nil {
		batch, _ = strconv.Atoi(g[1])
	}
	m = spec.Model{Kind: spec.Opaque}
	if strings.HasPrefix(jobType, "ResNet-50 ") { // on ImageNet, as in the catalog
		m, _ = catalog.Model("ResNet-50")
	}
	m.Name = jobType
	return m, batch
}

// GavelConfig returns the configuration of a job type on n devices: data parallel, one batch per device
// and step.
func GavelConfig(jobType string, n int) spec.Config {
	m, batch := gavelModel(jobType)
	return spec.Config{
		Model:     m,
		Plan:      spec.Plan{DP: n, MicroBatch: batch}.Normal(),
		Framework: "PyTorch",
	}
}

// measurement converts an entry. Consolidated devices are on as few servers as possible, assumed to
// be one; unconsolidated ones are on one server each. The servers of the testbed are not described,
// so links stay unknown.
func (e gavelEntry) measurement() (spec.Measurement, error) {
	fail := func(column, value string, err error) (spec.Measurement, error) {
		return spec.Measurement{}, &RowError{File: e.file, Line: e.line, Column: column, Value: value, Err: err}
	}
	g := gavelJobKey.FindStringSubmatch(e.job)
	if g == nil {
		return fail("job", e.job, errors.New("is not a pair of job type and device count"))
	}
	n, err := strconv.Atoi(g[2])
	if err != nil {
		return fail("job", e.job, err)
	}
	name, spread := strings.CutSuffix(e.worker, "_unconsolidated")
	acc, err := catalog.Accelerator(name)
	if err != nil {
		return fail("worker type", e.worker, err)
	}
	if e.rateErr == nil && (e.rate < 0 || e.rate > 0 && float64(n)/e.rate > maxStepSec) {
		e.rateErr = errors.New("is negative or too small")
	}
	if e.rateErr != nil {
		return fail("throughput", e.written, e.rateErr)
	}
	m := spec.Measurement{
		Config: GavelConfig(g[1], n), Source: "gavel/" + table.Stem(e.file), Origin: table.Origin("*.json", e.file, e.line),
		Env: map[string]string{"worker": e.worker, "job": e.job},
	}
	m.Config.Accelerator = acc
	m.Config.Shape = spec.Packed(n, n)
	if spread {
		m.Config.Shape = spec.Packed(n, 1)
	}
	if e.rate == 0 {
		m.Outcome, m.Reason = spec.OOM, "throughput 0: does not fit"
		return m, nil
	}
	m.Outcome, m.StepSec = spec.OK, []float64{float64(n) / e.rate}
	return m, nil
}

// maxStepSec bounds step times: a year.
const maxStepSec = 365 * 24 * 3600

// ReadGavelTable reads one throughput table as Gavel's simulator uses it: the isolated,
// consolidated values, for any placement. So each value is returned for every even placement, from
// one node for all devices to one node per device. An invalid row is an error; the published tables
// have none.
func ReadGavelTable(ctx context.Context, file string) ([]spec.Measurement, error) {
	var out []spec.Measurement
	for e, err := range consolidated(ctx, file, false) {
		if err != nil {
			return nil, err
		}
		m, err := e.measurement()
		if err != nil {
			return nil, err
		}
		for n := m.Config.Plan.DP; n > 0; n-- {
			if m.Config.Plan.DP%n == 0 {
				m.Config.Shape = spec.Packed(m.Config.Plan.DP, n)
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("datasets: %s holds no throughput", file)
	}
	return out, nil
}

// consolidated yields the consolidated entries of a file, isolated or of pairs.
func consolidated(ctx context.Context, file string, pairs bool) iter.Seq2[gavelEntry, error] {
	return func(yield func(gavelEntry, error) bool) {
		data, err := os.ReadFile(file)
		if err != nil {
			yield(gavelEntry{}, fmt.Errorf("datasets: %w", err))
			return
		}
		for e, err := range walkGavel(data, filepath.Base(file), pairs) {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if err == nil && strings.HasSuffix(e.worker, "_unconsolidated") {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
