// Package firstgc delays the first garbage collection of a process that imports it. The variables of all packages take
// more than the heap with which Go collects first, so every short command would collect twice before it begins.
//
// Start with firstgc.go.
package firstgc
