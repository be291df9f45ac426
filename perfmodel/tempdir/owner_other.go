//go:build !(darwin || dragonfly || freebsd || linux)

package tempdir

import "os"

// own marks nothing: this platform has no lock that ends with its process, so a
// left-over directory cannot be recognised.
func own(string) (*os.File, error) { return nil, nil }

func abandoned(string) bool { return false }
