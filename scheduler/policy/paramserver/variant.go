package paramserver

// Variant replaces rules of policies for jobs with parameter servers. The zero value
// replaces none.
type Variant struct {
	// EveryRound decides anew in every round, not only when something happens or may
	// change.
	EveryRound bool
	// LeastLoaded puts replicas and servers on the least loaded node, those of a pair
	// together; the first for which that node has no room ends the decision.
	LeastLoaded bool
	// Most bounds the replicas of a job, and its servers; 0 = what the space allows.
	Most int
	// ToTheMost lets fifo, srtf and tetris give pairs as long as a job may have them,
	// though they make it slower.
	ToTheMost bool
	// Left returns by what srtf and tetris order jobs; nil = the seconds left.
	Left func(done, remaining float64) float64
	// TetrisScore combines alignment and weighted size; nil = their difference.
	TetrisScore func(alignment, size float64) float64
}
