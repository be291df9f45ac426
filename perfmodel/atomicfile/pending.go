//go:build !windows

package atomicfile

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

type pendingFile = renameio.PendingFile

func newPendingFile(path string) (*pendingFile, error) {
	return renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)))
}
