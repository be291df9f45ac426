package blox

import "time"

// UrgentAfter is the uninterrupted wait after which Blox runs a job first.
const UrgentAfter = 3_600_000 * time.Second

// JobService is the seconds a job received, whatever its size.
func JobService(deviceSec float64, devices int) float64 { return deviceSec / float64(devices) }
