package order

import "time"

// Variant replaces rules of the policies in this package. The zero value replaces none.
type Variant struct {
	// UrgentAfter is how long a job waits in a row before it goes before all others,
	// for good, and preempts for it even under fifo; 0 = never.
	UrgentAfter time.Duration
	// EvictAnyway leaves jobs preempted though the job they make way for does not fit.
	EvictAnyway bool
	// PlaceAnew places a preempted job that fits anew, not on its old devices.
	PlaceAnew bool
	// StopAtMisfit lets a job that does not fit hold up all behind it, whatever option
	// backfill says.
	StopAtMisfit bool

	// Service returns what las orders jobs by, from device-seconds received and
	// devices; nil = device-seconds.
	Service func(deviceSec float64, devices int) float64
	// NoQuantum lets las preempt a job at any time.
	NoQuantum bool

	// TiresiasIsLAS makes tiresias las, without queues.
	TiresiasIsLAS bool
	// QueueByEntry orders the queues of tiresias behind the first by when a job was
	// first seen there, not by its submission.
	QueueByEntry bool
	// ByCount lets tiresias choose jobs by counts of devices, see byCount.
	ByCount bool
	// EveryRound lets tiresias, with ByCount, decide anew in every round.
	EveryRound bool
}
