package family

// HostRegular reports that predictions of plans that offload nothing do not
// depend on CPUs and host memory, and those of others are never slower with more
// CPUs (planner.HostRegular).
func (*Analytic) HostRegular() bool { return true }

// HostRegular is as that of Analytic: neither the residuals nor the forms mixed
// in know of CPUs but where something is offloaded.
func (*Hybrid) HostRegular() bool { return true }

// HostRegular is as that of Analytic.
func (*rubickModel) HostRegular() bool { return true }
