// Package family holds the kinds of performance models, one per file, each
// registering itself: formula, fitted parameters, how they are estimated.
//
// Start with family.go (the registry), then rubick.go, a decomposition of the
// step fitted to a few measurements, and analytic.go, which needs none.
package family
