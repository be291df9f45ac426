// Package remaining estimates the remaining service of jobs with an unknown run time, from the service that ended and
// present jobs received: the Gittins index in two dimensions (devices times time).
//
// Start with history.go, then curve.go.
package remaining
