package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/scheduler/live"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
)

// recorder writes the recording of --record.
type recorder struct {
	cli    *cli.Context
	writer *recording.Writer // nil = nothing is recorded
}

// observe records an observation.
func (r *recorder) observe(at time.Time, s *live.State) {
	if r.writer != nil {
		r.writer.Observe(at, s)
	}
}

// during records while run leads the cluster.
func (r *recorder) during(run func(context.Context) error) func(context.Context) error {
	path := r.cli.String("record")
	if path == "" {
		return run
	}
	return func(ctx context.Context) (err error) {
		if r.writer, err = r.open(path); err != nil {
			return fmt.Errorf("schedule: --record: %w", err)
		}
		defer func() {
			err = errors.Join(err, r.writer.Close(time.Now()))
			r.writer = nil
		}()
		return run(ctx)
	}
}

// open opens a recording, which one process at a time writes.
func (r *recorder) open(path string) (*recording.Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	held, err := lockFile(f)
	if err == nil && held {
		err = fmt.Errorf("another pacer writes %s", path)
	}
	var w *recording.Writer
	if err == nil {
		w, err = recording.NewWriter(f, recording.Session{Policy: r.cli.String("policy"), StartSec: r.cli.Duration("start-cost").Seconds()},
			func(err error) { fmt.Fprintln(r.cli.App.ErrWriter, "warning:", err) })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}
