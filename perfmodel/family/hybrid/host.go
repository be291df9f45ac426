package hybrid

// HostRegular is as that of analytic.Model: neither the residuals nor the mixed
// models depend on CPUs except where a plan offloads.
func (*Model) HostRegular() bool { return true }
