package paramserver

// Variant replaces rules of policies for jobs with parameter servers. The zero value
// replaces none.
type Variant struct {
	// EveryRound decides in every round, not only at events and intervals.
	EveryRound bool
	// LeastLoaded puts the tasks of a pair together on the least loaded node. The decision
	// ends at the first pair that does not fit there.
	LeastLoaded bool
	// Limit bounds the replicas of a job, and its servers; 0 = none but the space.
	Limit int
	// UpToLimit makes fifo, srtf and tetris give pairs up to the limit of a job, even if
	// they make it slower.
	UpToLimit bool
	// Left is the remaining work by which srtf and tetris order jobs; nil = seconds.
	Left func(done, remaining float64) float64
	// TetrisScore combines alignment and weighted size; nil = their difference.
	TetrisScore func(alignment, size float64) float64
}
