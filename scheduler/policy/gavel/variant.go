package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Variant replaces rules of the policies in this package. The zero value replaces none.
type Variant struct {
	// Rounds returns the policy that turns the fractions of an allocation into grants.
	// nil = leases.
	Rounds func(a *Allocation) scheduler.Policy
	// PairRounds is Rounds of gandiva, which draws at random from a seed.
	PairRounds func(p *Pairs, seed uint64) scheduler.Policy
	// ZerosCount counts types of devices on which a job cannot run as if it could.
	ZerosCount bool
	// AnyOptimum solves programs by the conic method and takes the optimum it ends at,
	// without a tie-break.
	AnyOptimum bool
	// Pays reports whether two jobs that share devices of a group stay together. gain
	// returns the sum of their normalised throughputs on a group. nil = the gain on their
	// group is above 1.
	Pays func(gain func(group int) (float64, error), group, groups int) (bool, error)
}

// Allocation has an objective and the candidates of jobs.
type Allocation struct {
	Objective  Objective
	candidates *candidateTable
}

// Candidates are the candidates of a kind of job.
type Candidates struct{ *candidateSet }

// All returns the candidates, ascending by group, then devices. Callers must not modify them.
func (c Candidates) All() []Candidate { return c.all }

// Warning returns a warning for the user, "" = none.
func (c Candidates) Warning() string { return c.warning }

// Candidates returns the candidates of j. The error is that of the oracle.
func (a *Allocation) Candidates(ctx context.Context, c spec.Cluster, j *spec.Job) (Candidates, error) {
	m, err := a.candidates.of(ctx, c, j)
	return Candidates{m}, err
}

// Place returns a grant of candidate k of c for j, nil if it does not fit.
func (a *Allocation) Place(free *scheduler.Inventory, j *spec.Job, c Candidates, k int) *scheduler.Grant {
	return a.candidates.place(free, j, c.candidateSet, k)
}

// Fractions returns the fractions of time of all jobs of s, by arrival. The result is
// valid until the next call.
func (a *Allocation) Fractions(ctx context.Context, s *scheduler.Snapshot) (*Shares, error) {
	shares, err := a.candidates.sharesOf(ctx, s, make([]*account, len(s.Jobs())))
	if err != nil {
		return nil, err
	}
	return shares, shares.fill(ctx, a.Objective)
}

// Pairs are jobs that may share devices.
type Pairs struct {
	Allocation
	Partner map[spec.JobID]spec.JobID // the partner of each job, symmetric
	matches *matches
}

// Runs reports whether two jobs of the snapshot can run together on a group.
func (p *Pairs) Runs(c spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	_, _, o, err := p.matches.jobPair(c, a, b, group)
	return o != nil, err
}

// Pays reports whether two jobs have a higher throughput sharing devices of a group than
// alternating on them.
func (p *Pairs) Pays(c spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	return p.matches.pays(c, a, b, group)
}

// PlacePair returns grants of the same devices of a group for two jobs, nil if they do
// not fit.
func (p *Pairs) PlacePair(c spec.Cluster, free *scheduler.Inventory, a, b *spec.Job, group int) (ofA, ofB *scheduler.Grant) {
	x, y := p.matches.jobKind(a), p.matches.jobKind(b)
	if x == nil || y == nil {
		return nil, nil
	}
	return p.matches.pairTable.place(c, free, *x, *y, group, a.Devices)
}
