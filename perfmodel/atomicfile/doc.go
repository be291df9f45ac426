// Package atomicfile writes files that are complete or untouched at any moment,
// also after a crash. It adds to github.com/google/renameio what that lacks:
// syncing the directory, removing the files of killed processes, and Windows.
//
// Start with atomicfile.go.
package atomicfile
