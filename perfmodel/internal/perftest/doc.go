// Package perftest holds invented jobs and checks that the tests of several families share.
//
// Start with perftest.go.
package perftest
