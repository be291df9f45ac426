//go:build !(darwin || dragonfly || freebsd || linux)

package schedule

import (
	"errors"
	"os"
)

// lockFile returns an error: this platform has no lock that ends with its process.
func lockFile(*os.File) (held bool, err error) {
	return false, errors.New("this platform has no file locks that pacer knows: start pacer schedule on Linux, macOS or FreeBSD")
}
