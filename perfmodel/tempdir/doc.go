// Package tempdir makes temporary directories for this process, and removes those of processes that were
// killed.
//
// Start with tempdir.go; owner_flock.go finds out whether the process of a directory is still running.
package tempdir
