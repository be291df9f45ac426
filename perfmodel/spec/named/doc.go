// Package named finds values by name. Set is the registry of policies, placers, performance models and
// importers; Nearest ranks names by similarity to a misspelt one; Compare sorts names in natural order; Parse
// reads the value of a setting.
//
// Start with set.go.
package named
