// Package nearest finds the measurements nearest to a configuration, and says in what they differ from it and where they
// were published.
//
// Start with nearest.go (Find and Row).
package nearest
