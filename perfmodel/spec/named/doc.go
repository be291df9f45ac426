// Package named finds values by name: Set is the registry of policies, placers,
// performance models and importers, Nearest ranks names by likeness to a wrong
// one, and Compare sorts names as readers expect.
//
// Start with set.go.
package named
