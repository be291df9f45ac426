package compat

// Quirks are departures from Pacer's semantics. The zero value has none. Each
// is obeyed by the package it is about: those of time by sim, of order and
// preemption and admission by policy, of nodes by place.
type Quirks struct {
	Ticks          bool
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
	{"numbers-in-order", "jobs seen in one round are in the order of their numbers; else of their submission",
		func(q *Quirks) *bool { return &q.NumbersInOrder }},
	{"overshoot", "admission load looks at what is admitted already; else also at the job itself",
		func(q *Quirks) *bool { return &q.Overshoot }},
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
}

// All returns every quirk there is.
func All() []Quirk { return append([]Quirk(nil), all...) }
