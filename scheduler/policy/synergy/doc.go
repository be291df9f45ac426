// Package synergy holds Synergy (Mohan et al., OSDI 2022): jobs get the CPUs and the memory of
// hosts that they can use, not a part in proportion to their devices.
//
//	best-case demand    the least CPUs and memory per device with which a job is fastest
//	proportional share  the part of a node's CPUs and memory for each of its devices
//
// demand.go finds best-case demands, tune.go places jobs and shares out hosts.
//
// Start with synergy.go and tune.go.
package synergy
