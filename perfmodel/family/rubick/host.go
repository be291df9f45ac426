package rubick

// HostRegular implements planner.HostRegular, as analytic.Model does.
func (*Model) HostRegular() bool { return true }
