// Package spectest has what tests of several packages need: the published data sets, and
// limits of time that hold on a busy machine.
package spectest
