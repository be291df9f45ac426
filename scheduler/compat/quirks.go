package compat

// Quirks are departures from Pacer's semantics. The zero value has none. Each
// is obeyed by the package it is about: those of time by sim, of order and
// preemption and admission by policy, of nodes by place, of what was measured by
// goodput.
type Quirks struct {
	Ticks          bool
	LateEnds       bool
	WholeSeconds   bool
	EpochsLeft     bool
	ArtifactLimits bool
	EveryRound     bool
	QueueByEntry   bool
	ByCount        bool
	NextReplica    bool
	JobService     bool
	Urgent         bool
	EvictAnyway    bool
	StopAtMisfit   bool
	Anew           bool
	NoQuantum      bool
	Overshoot      bool
	WholeDemand    bool
	TiresiasIsLAS  bool
	NumbersInOrder bool
	Barrier        bool
	WholeSteps     bool
	TypeByType     bool
	Throttle       bool
	NewcomersWait  bool
	ZerosCount     bool
	AnyOptimum     bool
	SummedGain     bool
	Slowdowns      bool
	SiaLimits      bool
	OwnModels      bool
	OwnersBatch    bool
	FreeMoves      bool
	RoundedCosts   bool
	AssumedStarts  bool
	YoungMove      bool
	LeastLoaded    bool
	ToTheMost      bool
	ShareLeft      bool
	TetrisSign     bool
	RawGain        bool
}

// Quirk describes one of Quirks.
type Quirk struct {
	Name string
	Doc  string // one line: what is done, and what Pacer does instead
	of   func(*Quirks) *bool
}

// Set turns the quirk on or off.
func (k Quirk) Set(q *Quirks, on bool) { *k.of(q) = on }

// In reports whether q has the quirk.
func (k Quirk) In(q Quirks) bool { return *k.of(&q) }

// all names every quirk, in the order it matters in a round.
var all = []Quirk{
	{"ticks", "completions and arrivals are seen at the next round, devices held until then; else when they happen",
		func(q *Quirks) *bool { return &q.Ticks }},
	{"late-ends", "with ticks, a job is complete when that is seen; else when it happened, devices held until it is seen",
		func(q *Quirks) *bool { return &q.LateEnds }},
	{"whole-seconds", "epochs end, and jobs complete, at whole seconds, up to half a one early or late; else exactly when they do",
		func(q *Quirks) *bool { return &q.WholeSeconds }},
	{"numbers-in-order", "jobs seen in one round are in the order of the numbers they end in; else of their submission",
		func(q *Quirks) *bool { return &q.NumbersInOrder }},
	{"overshoot", "admission load looks at what is admitted already; else also at the job itself",
		func(q *Quirks) *bool { return &q.Overshoot }},
	{"epochs-left", "what is left of a job that trains for epochs is told from the end of the running epoch to the end of the last, and 1 step in the last; else exactly",
		func(q *Quirks) *bool { return &q.EpochsLeft }},
	{"artifact-limits", "truth and belief goodput let ncf run on one device only and yolov3 with 8 samples a device at most; else with what was measured",
		func(q *Quirks) *bool { return &q.ArtifactLimits }},
	{"every-round", "optimus-oracle, tiresias and all policies for parameter servers decide anew in every round; else when something happens or may change",
		func(q *Quirks) *bool { return &q.EveryRound }},
	{"queue-by-entry", "in the queues of tiresias behind the first, who was first seen there goes first; else who was submitted first",
		func(q *Quirks) *bool { return &q.QueueByEntry }},
	{"by-count", "tiresias and optimus-oracle settle by counts of devices who runs, without quanta, let those stay and take any free devices for the others; else devices are found for one after the other, where it is believed fastest",
		func(q *Quirks) *bool { return &q.ByCount }},
	{"next-replica", "optimus-oracle looks one device, or one replica and one server, ahead; else at the best of all larger sizes per device, or dominant share",
		func(q *Quirks) *bool { return &q.NextReplica }},
	{"job-service", "las counts a job's seconds whatever its size; else its device-seconds",
		func(q *Quirks) *bool { return &q.JobService }},
	{"no-quantum", "las may stop a job in any round; else it runs for a quantum first",
		func(q *Quirks) *bool { return &q.NoQuantum }},
	{"tiresias-is-las", "tiresias has no queues, it is las; else it has",
		func(q *Quirks) *bool { return &q.TiresiasIsLAS }},
	{"urgent", "who once waited 3,600,000 s in a row, after being stopped a round longer, goes before all others for good, and fifo preempts for it; else nobody does",
		func(q *Quirks) *bool { return &q.Urgent }},
	{"evict-anyway", "jobs stopped for one that still does not fit stay stopped; else they run on",
		func(q *Quirks) *bool { return &q.EvictAnyway }},
	{"stop-at-misfit", "who does not fit holds up all behind, in every order; else only fifo does so",
		func(q *Quirks) *bool { return &q.StopAtMisfit }},
	{"anew", "who is stopped for another and fits after all is placed anew; else it stays where it was",
		func(q *Quirks) *bool { return &q.Anew }},
	{"whole-demand", "placement scattered takes up to the whole demand of every node and wants the sum exact, so that 4 devices never fit on nodes with 3 and 2 free; else it takes what is missing",
		func(q *Quirks) *bool { return &q.WholeDemand }},
	{"barrier", "a round lasts until everybody in it has run for as long or is done, arrivals and completions are seen then, and devices of who is done stand idle until then; else when they happen",
		func(q *Quirks) *bool { return &q.Barrier }},
	{"whole-steps", "in a round with a barrier a job makes the steps of all its devices that fit wholly, if one does, and waits; else it goes on until the end of the round",
		func(q *Quirks) *bool { return &q.WholeSteps }},
	{"type-by-type", "fractions of time become rounds type by type in the cluster's order, shuffled for policies told nothing of speeds, by the time got since the fractions were computed; else all types together by what was owed and got for hours, who holds devices first, and between rounds free devices are given away",
		func(q *Quirks) *bool { return &q.TypeByType }},
	{"throttle", "fractions are computed again at most every 1920 s; else whenever jobs have come or gone",
		func(q *Quirks) *bool { return &q.Throttle }},
	{"newcomers-wait", "who is not in the fractions yet takes devices that are left and does not run; else it runs",
		func(q *Quirks) *bool { return &q.NewcomersWait }},
	{"zeros-count", "types a job does not run on count as if it did: gavel-fifo may give it one, on which it waits and holds up nobody, and its isolated share has a part in them; else they do not",
		func(q *Quirks) *bool { return &q.ZerosCount }},
	{"any-optimum", "of equal optima of a programme the one at which CVXOPT ends, between their middle and where it begins; else the one of greatest total, or most even",
		func(q *Quirks) *bool { return &q.AnyOptimum }},
	{"summed-gain", "under gandiva two that share devices part when the parts of their speeds that they keep come to less than 1 in sum over both and all types; else when they come to no more than 1 on the type they are on",
		func(q *Quirks) *bool { return &q.SummedGain }},
	{"slowdowns", "truth and belief goodput divide all speeds by 1.8 for cifar10, 1.5 for ncf, 1.2 for others; else they are as measured",
		func(q *Quirks) *bool { return &q.Slowdowns }},
	{"sia-limits", "truth and belief goodput let deepspeech2 run with 57 samples a device at most on RTX2080Ti; else with what was measured",
		func(q *Quirks) *bool { return &q.SiaLimits }},
	{"own-models", "with truth goodput jobs choose their batch, and sia is told their goodput, by models fitted to the steps they have made; else by what is true",
		func(q *Quirks) *bool { return &q.OwnModels }},
	{"owners-batch", "with own-models sia takes jobs to train no more than the batch they were submitted with; else, as they do, up to the largest",
		func(q *Quirks) *bool { return &q.OwnersBatch }},
	{"free-moves", "who keeps its shape moves between nodes of one type for nothing; else that is a restart",
		func(q *Quirks) *bool { return &q.FreeMoves }},
	{"rounded-costs", "sia rounds the cost of a configuration to 1/100; else it does not",
		func(q *Quirks) *bool { return &q.RoundedCosts }},
	{"assumed-starts", "sia takes a restart to last 30 s for cifar10, 45 s for yolov3; else what it does",
		func(q *Quirks) *bool { return &q.AssumedStarts }},
	{"young-move", "sia counts no restarts of jobs that have not been there for as long as one lasts; else it does",
		func(q *Quirks) *bool { return &q.YoungMove }},
	{"least-loaded", "replicas and parameter servers go to the least loaded node, those of a pair together, up to 16 of each, and the first for which that has no room ends the round; else to any with room",
		func(q *Quirks) *bool { return &q.LeastLoaded }},
	{"to-the-most", "with parameter servers fifo, srtf and tetris give one of each as long as a job may have them, though that makes it slower; else the fastest numbers",
		func(q *Quirks) *bool { return &q.ToTheMost }},
	{"share-left", "with parameter servers srtf and tetris look at which part of a job is left; else at the time",
		func(q *Quirks) *bool { return &q.ShareLeft }},
	{"tetris-sign", "tetris prefers jobs of which much is left; else those of which little is",
		func(q *Quirks) *bool { return &q.TetrisSign }},
	{"raw-gain", "with parameter servers optimus-oracle compares the time saved; else that over the dominant share of what saves it",
		func(q *Quirks) *bool { return &q.RawGain }},
}

// All returns every quirk there is.
func All() []Quirk { return append([]Quirk(nil), all...) }
