// Package child runs the command of a user in the place of pacer: with its streams, its signals and its exit code.
//
// Start with child.go.
package child
