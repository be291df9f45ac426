package device

// clockReasons is how many bits of NVML's clock event reasons are known.
const clockReasons = 9

// clockReason is why clocks were not at their highest (nvml.h,
// nvmlClocksEventReasons; older drivers say clocks throttle reasons).
type clockReason struct {
	name string
	// doubt: the device was not in the state the configuration is measured in,
	// so that step times are doubted. The others are normal: idle between
	// kernels, a chosen clock, and the power limit, at which large matrix
	// products run all the time.
	doubt bool
}

// reasonPowerCap is the bit of the power limit.
const reasonPowerCap = 2

// clockReasonsByBit are the reasons, by bit.
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
