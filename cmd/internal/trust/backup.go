package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
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
			return fetchBackup(ctx, url, w)
		}
		if err != nil {
			return err
		}
		return errors.Join(db.Backup(w), db.Close())
	})
}

// fetchBackup copies the backup of the server at url to w.
func fetchBackup(ctx context.Context, url string, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/backup", nil)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if token := os.Getenv(command.TokenVariable); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // part of the message only
		return fmt.Errorf("backup: %s/v1/backup answers %s: %s", url, res.Status, why)
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("backup: %s/v1/backup: %w", url, err)
	}
	return nil
}
