package rubick

// HostRegular is as that of analytic.Model.
func (*Model) HostRegular() bool { return true }
