//go:build !(darwin || dragonfly || freebsd || linux)

package scratch

import "os"

// own marks nothing: without locks that end with their process nobody can tell
// later whether it lives.
func own(string) (*os.File, error) { return nil, nil }

func abandoned(string) bool { return false }
