// Package rubick holds Rubick (Zhang et al., MLSys 2025), which chooses plans and sizes
// by the slopes of sensitivity curves, and its variants that choose less.
//
// Start with rubick.go, shrink.go and why.go.
package rubick
