// Package rowfiletest has invented and random measurements, for tests of what keeps or copies rows.
package rowfiletest
