// Package yamlfile reads YAML files that people write, such as campaigns and
// studies, and reports all errors of a file at once, each with line and column.
//
// A reader parses a File into its top Node and calls the method for the wanted
// type. A Node of another type records an error in the File and returns a zero
// value, so that reading goes on. File.Err returns all errors. Anchors, aliases,
// tags and second documents are refused.
//
// Start with yamlfile.go (File), then node.go (Node and its readers).
package yamlfile
