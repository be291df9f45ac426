//go:build !linux

package device

// NetworkBps returns 0: the rate of the network is unknown.
func NetworkBps() float64 { return 0 }
