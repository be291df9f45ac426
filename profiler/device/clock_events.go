package device

// clockReasons is the number of known bits of NVML's clock event reasons.
const clockReasons = 9

// clockReason is a reason for reduced clocks (nvml.h, nvmlClocksEventReasons; older drivers call
// them throttle reasons).
type clockReason struct {
	name string
	// doubt: the device was not in its normal state, so the step times are doubtful. The other reasons are
	// normal: idle between kernels, a configured clock, and the power limit, which large matrix products reach
	// all the time.
	doubt bool
}

// reasonPowerCap is the bit of the power limit.
const reasonPowerCap = 2

// clockReasonsByBit lists the reasons by bit.
var clockReasonsByBit = [clockReasons]clockReason{
	{"idle", false},
	{"application clocks setting", false},
	{"power limit", false},
	{"hardware slowdown", true},
	{"sync boost", true},
	{"software thermal slowdown", true},
	{"hardware thermal slowdown", true},
	{"power brake", true},
	{"display clocks setting", false},
}
