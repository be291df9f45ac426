package plan

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// storeWait is the time that the end of a run waits while another process has the store open, such as another run
// that ends.
const storeWait = 30 * time.Second

// store stores a row and says where. If another process keeps the store open, the row is written to a file that the
// error names.
func (w *watch) store(m spec.Measurement) (where string, err error) {
	if err := rowfile.Check(&m); err != nil {
		return "", err
	}
	rows, err := w.openRows()
	if errors.Is(err, store.ErrLocked) {
		return "", w.keep(m, err)
	}
	if err != nil {
		return "", err
	}
	if rows.Served != nil {
		where = rows.Served.Address()
	} else {
		where, err = datadir.Of(w.c).Path()
	}
	return where, errors.Join(err, rows.Put(w.ctx, m), rows.Close())
}

// openRows opens the store. It waits for other processes unless this one is interrupted.
func (w *watch) openRows() (*datadir.Rows, error) {
	for deadline := time.Now().Add(storeWait); ; {
		rows, err := datadir.Of(w.c).OpenRows(store.Options{})
		if !errors.Is(err, store.ErrLocked) || time.Now().After(deadline) {
			return rows, err
		}
		select {
		case <-w.c.Context.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// keep writes a row to a file of the data directory, which locked does not concern.
func (w *watch) keep(m spec.Measurement, locked error) error {
	dir, err := datadir.Of(w.c).Path()
	if err != nil {
		return errors.Join(locked, err)
	}
	file := filepath.Join(dir, "watch-"+rand.Text()[:8]+".parquet")
	one := func(yield func(spec.Measurement, error) bool) { yield(m, nil) }
	if _, err := rowfile.ExportFile(file, rowfile.Parquet, one); err != nil {
		return errors.Join(locked, err)
	}
	return fmt.Errorf("%w; later, pacer import parquet %s does", locked, file)
}
