// Package hostspeed has measured effects of the CPUs and the memory of hosts on the speed of
// jobs, as Synergy (Mohan et al., OSDI 2022) profiles them: for policies, and for the truth
// of simulations.
//
// Start with table.go; read.go reads files, truth.go is the truth.
package hostspeed
