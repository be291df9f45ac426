// Package themis holds Themis (Mahajan et al., NSDI 2020): leases of devices are auctioned
// among the jobs with the worst finish-time fairness.
//
//	rho        finish-time fairness, see themis
//	gang       all devices of a job
//	contender  a job without a lease
//	offer      a gang in a group, with the remaining time of a job on it
//	leftover   devices that the auction did not sell
//
// themis.go computes rho and offers, auction.go is the partial allocation mechanism,
// sell.go runs the auctions and assigns the leftover devices.
//
// Start with themis.go and auction.go.
package themis
