// Package optimus holds Optimus (Peng et al., EuroSys 2018), with and without parameter
// servers: devices go one by one to the job they save most time.
//
// Start with optimus.go, served.go and convergence.go.
package optimus
