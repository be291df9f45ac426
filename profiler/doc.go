// Package profiler is about measurements: package store keeps them.
package profiler
