package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Verification is the JSON of pacer store verify.
type Verification struct {
	OK       bool     `json:"ok" doc:"There is no fault."`
	Rows     int      `json:"rows" doc:"Measurements that can be read."`
	Bytes    int64    `json:"bytes" doc:"Size of the store's files."`
	Faults   []string `json:"faults" doc:"Damaged files and measurements, 100 at most. pacer store restore makes a store from a backup."`
	ElapsedS float64  `json:"elapsed_s" doc:"Seconds that it took."`
}

// Compaction is the JSON of pacer store compact.
type Compaction struct {
	Rows        int     `json:"rows" doc:"Measurements in the store."`
	BytesBefore int64   `json:"bytes_before" doc:"Size of the store's files before."`
	BytesAfter  int64   `json:"bytes_after" doc:"Size of the store's files now."`
	ElapsedS    float64 `json:"elapsed_s" doc:"Seconds that it took."`
}

// Verify checks an open store.
func Verify(ctx context.Context, db *store.DB) (Verification, error) {
	start := time.Now()
	v, err := db.Verify(ctx)
	return Verification{len(v.Faults) == 0, v.Rows, v.Bytes, query.OrEmpty(v.Faults), time.Since(start).Seconds()}, err
}

// Compact makes the files of an open store as small as they can be.
func Compact(ctx context.Context, db *store.DB) (out Compaction, err error) {
	start := time.Now()
	if out.BytesBefore, err = db.Size(); err != nil {
		return out, err
	}
	if err := db.Compact(); err != nil {
		return out, err
	}
	if out.BytesAfter, err = db.Size(); err != nil {
		return out, err
	}
	out.Rows, err = db.Len(ctx, store.Filter{})
	out.ElapsedS = time.Since(start).Seconds()
	return out, err
}

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "check all files and measurements of the store", Before: command.NoArgs,
		Description: `The files are read with their checksums, and then every measurement. Faults are
listed, and the exit code is then 1. While pacer serve has the store open, the
server checks it; it wants a token with scope admin in $` + command.TokenVariable + `, if it has
tokens.`,
		Action: func(c *cli.Context) error {
			var out Verification
			err := maintain(c.Context, datadir.Of(c), true, "/v1/store/verify", &out, func(db *store.DB) (err error) {
				out, err = Verify(c.Context, db)
				return err
			})
			if errors.Is(err, store.ErrCorrupt) {
				out, err = Verification{Faults: []string{err.Error()}}, nil
			}
			if err == nil {
				err = command.Print(c, out.result())
			}
			if n := len(out.Faults); err == nil && n > 0 {
				err = fail.WithCode(fail.Failed, fmt.Errorf("verify: the store has %s", spec.Count(n, "fault")))
			}
			return err
		},
	}
}

func compactCommand() *cli.Command {
	return &cli.Command{
		Name: "compact", Usage: "give back the disk space of deleted and replaced measurements", Before: command.NoArgs,
		Description: `The files of the store are written anew, which takes as much disk space again
until it ends; no measurement changes. Measurements that arrive meanwhile wait.
While pacer serve has the store open, the server does it; it wants a token with
scope admin in $` + command.TokenVariable + `, if it has tokens.`,
		Action: func(c *cli.Context) error {
			var out Compaction
			err := maintain(c.Context, datadir.Of(c), false, "/v1/store/compact", &out, func(db *store.DB) (err error) {
				out, err = Compact(c.Context, db)
				return err
			})
			if err != nil {
				return err
			}
			return command.Print(c, out.result())
		},
	}
}

// maintain calls use with the store of d, or asks the server that has it open with path, and decodes its answer into out.
func maintain(ctx context.Context, d *datadir.Dir, readOnly bool, path string, out any, use func(*store.DB) error) error {
	db, err := d.Open(store.Options{ReadOnly: true})
	if url, served := d.Server(err); served {
		client, err := remote.New(url, remote.Options{Token: os.Getenv(command.TokenVariable)})
		if err != nil {
			return err
		}
		return client.Do(ctx, http.MethodPost, path, struct{}{}, out)
	}
	if err == nil && !readOnly { // there is a store: open it for writing
		if err = db.Close(); err == nil {
			db, err = d.Open(store.Options{})
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

func (v *Verification) result() console.Result {
	return console.Result{JSON: v, CSV: [][]string{{"ok", "rows", "bytes", "faults"}, {strconv.FormatBool(v.OK), strconv.Itoa(v.Rows), strconv.FormatInt(v.Bytes, 10), strconv.Itoa(len(v.Faults))}},
		Table: func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s in %d bytes, %s\n", spec.Count(v.Rows, "measurement"), v.Bytes, spec.Count(len(v.Faults), "fault"))
			for _, f := range v.Faults {
				fmt.Fprintln(w, f)
			}
			return err
		}}
}

func (v *Compaction) result() console.Result {
	return console.Result{JSON: v, CSV: [][]string{{"rows", "bytes_before", "bytes_after"}, {strconv.Itoa(v.Rows), strconv.FormatInt(v.BytesBefore, 10), strconv.FormatInt(v.BytesAfter, 10)}},
		Table: func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s in %d bytes, %d before\n", spec.Count(v.Rows, "measurement"), v.BytesAfter, v.BytesBefore)
			return err
		}}
}
