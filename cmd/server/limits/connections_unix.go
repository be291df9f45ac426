//go:build unix

package limits

import "syscall"

// MaxConnections returns the number of connections that leaves the store half of the file descriptors.
func MaxConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return mostConnections
	}
	return int(min(uint64(limit.Cur)/2, mostConnections)) //nolint:gosec,unconvert // at most mostConnections; signed on FreeBSD
}
