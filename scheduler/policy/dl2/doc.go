// Package dl2 holds DL2 (Peng et al., TPDS 2021): a policy network assigns resources to jobs
// in increments. Package scheduler/learn trains networks; dl2.bin comes with Pacer.
//
//	slot    interval between decisions about running jobs
//	action  one more increment for one job, or the void action, which ends the slot
//	column  inputs of the network for one job; seat is the job in it
//	form    what a network was trained for: models, columns, slots, parameter servers
//
// state.go encodes the state, sized_job.go has the increments of jobs without parameter
// servers, paramserver.go those of jobs with them, model.go reads and writes networks.
//
// Start with dl2.go, state.go and model.go.
package dl2
