//go:build !unix

package limits

// MaxConnections returns the number of connections that leaves the store half of the file descriptors.
func MaxConnections() int { return mostConnections }
