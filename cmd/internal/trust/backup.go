package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

func backupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "copy the store to a file", ArgsUsage: "FILE",
		Description: `The file has all measurements, marks and tombstones as of the start, and a
checksum. While pacer serve has the store open, the server writes the copy; it
wants a token with scope admin in $` + command.TokenVariable + `, if it has tokens.

   pacer store backup pacer.backup
   pacer --data /srv/new store restore pacer.backup`,
		Action: func(c *cli.Context) error {
			path, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			if err := backup(c.Context, datadir.Of(c), path); err != nil {
				return err
			}
			return store.CheckBackup(path)
		},
	}
}

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make the store of --data from a backup", ArgsUsage: "FILE",
		Description: `The data directory must have no store. The whole file is checked before anything
is written.`,
		Action: func(c *cli.Context) error {
			path, err := command.OnePath(c, "FILE")
			if err != nil {
				return err
			}
			dir, err := datadir.Of(c).Path()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			return store.Restore(path, filepath.Join(dir, "store"))
		},
	}
}

// backup writes the store of d to path, which it replaces atomically.
func backup(ctx context.Context, d *datadir.Dir, path string) error {
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		db, err := d.Open(store.Options{ReadOnly: true})
		if url, served := d.Server(err); served {
			client, err := remote.New(url, remote.Options{Token: os.Getenv(command.TokenVariable)})
			if err != nil {
				return err
			}
			return client.Backup(ctx, w)
		}
		if err != nil {
			return err
		}
		return errors.Join(db.Backup(w), db.Close())
	})
}
