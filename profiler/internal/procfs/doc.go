// Package procfs reads processes from /proc by github.com/prometheus/procfs. It
// adds a root directory, for tests, and names that are valid UTF-8.
package procfs
