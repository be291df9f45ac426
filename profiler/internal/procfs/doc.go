// Package procfs reads what Linux says of its processes in /proc.
package procfs
