// Package spectest finds the published data sets that tests compare with.
package spectest
