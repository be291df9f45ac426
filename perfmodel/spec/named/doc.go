// Package named finds things by name and helps with wrong names: Set is the
// registry that policies, placers, performance models and importers are kept
// in, Nearest ranks names by how much they look like a wrong one.
//
// Start with set.go.
package named
