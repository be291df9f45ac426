// Package keyfile reads YAML, JSON and TOML documents as keys with their values and their places in the text, and changes
// them there, so that everything else stays as it was written.
//
// Start with entries.go (Entry, YAML, JSON and TOML). toml.go has EditTOML, yaml_edit.go and json_edit.go the same for a
// Document of the other two. nesting.go refuses text that would take parsers long.
package keyfile
