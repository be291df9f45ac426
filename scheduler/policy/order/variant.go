package order

import "time"

// Variant replaces rules of the policies in this package. The zero value replaces none.
type Variant struct {
	// UrgentAfter is the uninterrupted wait after which a job has priority over all
	// others for the rest of its life. Even fifo preempts for it. 0 = never.
	UrgentAfter time.Duration
	// EvictAnyway does not undo preemptions if the job they were for does not fit.
	EvictAnyway bool
	// PlaceAnew lets the placer choose devices for a preempted job that still fits,
	// instead of its old devices.
	PlaceAnew bool
	// StopAtMisfit makes a job that does not fit block all jobs behind it, regardless of
	// option backfill.
	StopAtMisfit bool

	// Service is the key of las, from attained device-seconds and devices; nil =
	// device-seconds.
	Service func(deviceSec float64, devices int) float64
	// NoQuantum lets las preempt a job at any time.
	NoQuantum bool

	// TiresiasIsLAS makes tiresias las, without queues.
	TiresiasIsLAS bool
	// QueueByEntry orders the queues of tiresias after the first by the time a job
	// entered them, not by submission.
	QueueByEntry bool
	// ByCount lets tiresias admit jobs by device counts before placing any, see countFirst.
	ByCount bool
	// EveryRound lets tiresias, with ByCount, decide in every round.
	EveryRound bool
}
