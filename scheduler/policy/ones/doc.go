// Package ones holds ONES (Bian et al., SC 2021): an evolutionary search over schedules in
// which batches grow with devices.
//
//	schedule               the job of each device of the cluster, an individual
//	allocation             the number of devices of each job, a schedule without a layout
//	size                   a number of devices that a job can run on
//	limit                  the size that a job may have at present (R in the paper)
//	young                  has not trained enough epochs for an estimate
//	remaining utilization  device-seconds left of the jobs of a schedule; SRUF minimises it
//	rho                    the fraction of its samples that a job has processed
//
// observe.go follows the jobs and sets limits, progress.go estimates rho from losses,
// evolve.go makes an iteration, layout.go orders jobs on devices, apply.go makes grants.
//
// Start with ones.go, evolve.go and apply.go.
package ones
