// Package unfitted keeps the models that are behind the measurements, and since when, also after the process was killed.
//
// Start with keys.go (Keys).
package unfitted
