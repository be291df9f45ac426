// Package yamlfile reads YAML files that people write, such as campaigns and studies, and reports all errors of
// a file at once, each with line and column.
//
// A caller parses a File into its top Node and calls the method for the type it wants. If the Node has another
// type, the method records an error in the File and returns a zero value, so that the caller can continue.
// File.Err returns all errors. Anchors, aliases, tags and second documents are errors.
//
// Start with yamlfile.go (File), then node.go (Node and its methods).
package yamlfile
