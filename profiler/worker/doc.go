// Package worker is the PyTorch program that trains a model with synthetic data
// under a plan and times it, and the files by which the profiler talks to it.
// The program is embedded and needs nothing but Python 3.9 and torch 1.13 or
// later; what an installed torch lacks it says itself.
//
// Start with request.go and result.go, what goes in and comes out; then
// pacer_worker/point.py (one point, from request to result), measure.py (how
// long it is measured) and engine.py (how it trains).
package worker
