package problem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"
	"testing"

	"github.com/pacer-ml/pacer/profiler/store"
)

// A full disk is no defect, whatever was written.
func TestOf(t *testing.T) {
	for err, want := range map[error]int{
		store.ErrNoSpace: http.StatusInsufficientStorage,
		fmt.Errorf("registry: %w", &fs.PathError{Op: "write", Path: "x.model", Err: syscall.ENOSPC}): http.StatusInsufficientStorage,
		&fs.PathError{Op: "write", Path: "x.model", Err: syscall.EIO}:                                http.StatusInternalServerError,
		context.DeadlineExceeded: http.StatusServiceUnavailable,
		errors.New("x"):          http.StatusInternalServerError,
	} {
		if got := Of(err); got.Status != want {
			t.Errorf("%v: %d %s, want %d", err, got.Status, got.Detail, want)
		}
	}
}
