// Package tempdir makes temporary directories of a process, and removes those of
// killed processes.
//
// Start with tempdir.go; owner_flock.go finds out whether the process of a
// directory still runs.
package tempdir
