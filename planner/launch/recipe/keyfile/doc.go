// Package keyfile reads YAML, JSON and TOML documents as keys with their values and their places in the text, and changes
// them there, so that everything else stays as it was written.
//
// Start with entries.go (Entry, YAML, JSON and TOML) and toml.go (EditTOML).
package keyfile
