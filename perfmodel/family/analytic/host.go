package analytic

// HostRegular reports that predictions of plans without offload do not depend on CPUs and host memory, and that
// those of other plans are never slower with more CPUs (planner.HostRegular).
func (*Model) HostRegular() bool { return true }
