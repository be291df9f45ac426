// Package themis holds Themis (Mahajan et al., NSDI 2020): leases of devices are
// auctioned among the jobs with the worst finish-time fairness.
//
// Start with themis.go and auction.go.
package themis
