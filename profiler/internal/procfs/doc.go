// Package procfs reads processes from /proc with github.com/prometheus/procfs. It adds a root directory, for
// tests, and makes names valid UTF-8.
package procfs
