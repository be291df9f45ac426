// Package standby answers the checks of a server that cannot answer questions yet, such as a writer that waits for its
// lease.
//
// Start with standby.go (Serve).
package standby
