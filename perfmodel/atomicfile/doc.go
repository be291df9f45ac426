// Package atomicfile replaces files atomically: a reader, or a crash, finds the old or the new content, never a
// part. It adds to github.com/google/renameio what that package lacks: syncing the directory, removing the
// temporary files of killed processes, and Windows.
//
// Start with atomicfile.go.
package atomicfile
