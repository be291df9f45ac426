package hybrid

// HostRegular implements planner.HostRegular as analytic.Model does: neither the residuals nor the mixed models
// depend on CPUs, except for plans that offload.
func (*Model) HostRegular() bool { return true }
