// Package optimus holds Optimus (Peng et al., EuroSys 2018), with and without parameter
// servers: resources go one by one to the job with the highest marginal gain.
//
//	gain   seconds saved by more devices, per device
//	young  without enough logged losses for an estimate of the remaining steps
//	Sizing the allocation for jobs without parameter servers
//
// optimus.go and grow.go allocate devices (section 4.1), place.go places jobs (4.2),
// convergence.go estimates remaining steps (3.1), paramserver.go is all of it for jobs
// with parameter servers, as in the paper.
//
// Start with optimus.go, paramserver.go and convergence.go.
package optimus
