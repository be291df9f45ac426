package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rowPrefix1 begins the row keys of format 1: the prefix and an identity. They have no names, so every query
// had to read every row.
const rowPrefix1 = 'm'

// migrateBatch is the number of rows moved per transaction.
const migrateBatch = 256

// migrate converts the rows to rowFormat. Each transaction moves some rows to their new keys and removes
// the old ones; the format key is written last. So a killed migration continues where it stopped, and a
// finished one does nothing. moved, if not nil, is called with the number of rows after each transaction.
func migrate(bdb *badger.DB, moved func(rows int)) (err error) {
	defer recoverPanic(&err)
	at, err := readFormat(bdb)
	if err != nil || at == rowFormat {
		return err
	}
	if at > rowFormat {
		return fmt.Errorf("format %d: %w", at, ErrNewer)
	}
	for {
		n, err := migrateRows(bdb)
		if err != nil {
			return err
		}
		if moved != nil {
			moved(n)
		}
		if n == 0 {
			return setFormat(bdb)
		}
	}
}

// readFormat returns the format of the rows, 1 if there is no format key.
func readFormat(bdb *badger.DB) (v int, err error) {
	err = bdb.View(func(txn *badger.Txn) error {
		it, err := txn.Get([]byte(formatKey))
		if errors.Is(err, badger.ErrKeyNotFound) {
			v = 1
			return nil
		}
		if err != nil {
			return err
		}
		return it.Value(func(b []byte) error {
			v, err = strconv.Atoi(string(b))
			return err
		})
	})
	return v, err
}

func setFormat(bdb *badger.DB) error {
	return bdb.Update(func(txn *badger.Txn) error {
		return txn.Set([]byte(formatKey), strconv.AppendInt(nil, rowFormat, 10))
	})
}

// migrateRows moves up to migrateBatch rows of format 1 and returns their number.
func migrateRows(bdb *badger.DB) (n int, err error) {
	err = bdb.Update(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{rowPrefix1}})
		defer it.Close()
		size := 0
		for it.Rewind(); it.Valid() && n < migrateBatch && size < maxTxnBytes; it.Next() {
			item := it.Item()
			size += int(item.EstimatedSize())
			if err := migrateRow(txn, item); err != nil {
				return fmt.Errorf("row %x: %w", item.Key(), err)
			}
			n++
		}
		return nil
	})
	return n, err
}

func migrateRow(txn *badger.Txn, item *badger.Item) error {
	m, err := readRow(item)
	if err != nil {
		return err
	}
	var r row
	if err := r.encode(m); err != nil {
		return err
	}
	if err := txn.Delete(item.KeyCopy(nil)); err != nil {
		return err
	}
	return txn.SetEntry(r.entry())
}

// record1 is a stored value of version 1: a flat row with plan and shape as text and times in milliseconds.
type record1 struct {
	Model       spec.Model         `json:"model"`
	Accelerator spec.Accelerator   `json:"accelerator"`
	Link        spec.Link          `json:"link"`
	SeqLen      int                `json:"seq_len,omitempty"`
	Plan        string             `json:"plan"`
	Devices     string             `json:"devices"`
	CPUs        int                `json:"cpus,omitempty"`
	HostBytes   float64            `json:"host_bytes,omitempty"`
	Framework   string             `json:"framework,omitempty"`
	Outcome     spec.Outcome       `json:"outcome"`
	Note        string             `json:"note,omitempty"` // reason of a row that is not OK, otherwise its doubt
	StepMs      []float64          `json:"step_ms,omitempty"`
	PhaseMs     map[string]float64 `json:"phase_ms,omitempty"`
	PeakBytes   float64            `json:"peak_bytes,omitempty"`
	Source      string             `json:"source"`
	Origin      string             `json:"origin,omitempty"`
	AtUnixNano  int64              `json:"at_unix_nano,omitempty"` // 0 = unknown
	Env         map[string]string  `json:"env,omitempty"`
}

func decodeRecord1(b []byte) (spec.Measurement, error) {
	var r record1
	if err := json.Unmarshal(b, &r); err != nil {
		return spec.Measurement{}, fmt.Errorf("record of version 1: %w", err)
	}
	plan, err := spec.ParsePlan(r.Plan)
	if err != nil {
		return spec.Measurement{}, fmt.Errorf("record of version 1: %w", err)
	}
	m := spec.Measurement{
		Config: spec.Config{Model: r.Model, SeqLen: r.SeqLen, Plan: plan, Accelerator: r.Accelerator, Link: r.Link,
			Shape: spec.Shape{Devices: r.Devices, CPUs: r.CPUs, HostBytes: r.HostBytes}, Framework: r.Framework},
		Outcome: r.Outcome, PeakBytes: r.PeakBytes, Source: r.Source, Origin: r.Origin, Env: r.Env,
	}
	if r.Outcome == spec.OK {
		m.Doubt = r.Note
	} else {
		m.Reason = r.Note
	}
	for _, ms := range r.StepMs {
		m.StepSec = append(m.StepSec, ms/1000)
	}
	for phase, ms := range r.PhaseMs {
		if m.PhaseSec == nil {
			m.PhaseSec = map[string]float64{}
		}
		m.PhaseSec[phase] = ms / 1000
	}
	if r.AtUnixNano != 0 {
		m.At = time.Unix(0, r.AtUnixNano).UTC()
	}
	return m, nil
}
