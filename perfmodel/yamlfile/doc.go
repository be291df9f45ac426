// Package yamlfile reads the YAML files people write, such as campaigns and
// studies: everything that is wrong with one is reported at once, each with its
// line and column.
//
// A reader parses a File into its top Node and asks the nodes for what they
// should be. Nodes that are something else record the fault with the File and
// give zero values, so that readers go on; File.Err is what was wrong in all.
// Anchors, aliases, tags and second documents are not read.
package yamlfile
