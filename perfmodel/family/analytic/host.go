package analytic

// HostRegular reports that predictions of plans that offload nothing do not
// depend on CPUs and host memory, and those of others are never slower with more
// CPUs (planner.HostRegular).
func (*Model) HostRegular() bool { return true }
