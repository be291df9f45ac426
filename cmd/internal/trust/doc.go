// Package trust is pacer store: which stored rows are believed. Its commands quarantine rows, forget them, release them,
// and list what is stored by source.
//
// Start with command.go (flags and help), then selection.go (rows by names, origins and outliers), change.go and list.go.
// maintain.go checks and compacts the whole store.
package trust
