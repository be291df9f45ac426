// Package reader is what readers of stored measurements need to know of a store. Unlike package store it needs no
// database, so that programs without one, such as the page's WebAssembly, can be built from code that reads rows.
package reader
