// Package named finds things by name, orders them and helps with wrong names:
// Set is the registry that policies, placers, performance models and importers
// are kept in, Nearest ranks names by how much they look like a wrong one,
// Compare puts them in the order people expect.
//
// Start with set.go.
package named
