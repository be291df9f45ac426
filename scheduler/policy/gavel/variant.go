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
	// ZerosCount counts types of devices on which a job does not run as if it did.
	ZerosCount bool
	// AnyOptimum solves programmes by the conic method, and takes of equal optima the one
	// at which it ends.
	AnyOptimum bool
	// Pays reports whether two jobs that share devices of a group stay together. gain
	// returns the sum of the parts of their speeds that they keep on a group. nil = the
	// gain on their group is above 1.
	Pays func(gain func(group int) (float64, error), group, groups int) (bool, error)
}

// Allocation is the configurations of jobs and the objective that divides the time.
type Allocation struct {
	Objective  Objective
	candidates *candidates
}

// Candidates are the configurations of a kind of jobs.
type Candidates struct{ *candidateSet }

// Ways returns them, ascending by group, then devices. They are not to be modified.
func (c Candidates) Ways() []Way { return c.ways }

// Warning returns what a user should know about them, "" if nothing.
func (c Candidates) Warning() string { return c.warning }

// Candidates returns the configurations of j. The error is the oracle's.
func (a *Allocation) Candidates(ctx context.Context, c spec.Cluster, j *spec.Job) (Candidates, error) {
	m, err := a.candidates.of(ctx, c, j)
	return Candidates{m}, err
}

// Place returns a grant of the k-th of c for j, nil if it finds no room in free.
func (a *Allocation) Place(free *scheduler.Inventory, j *spec.Job, c Candidates, k int) *scheduler.Grant {
	return a.candidates.place(free, j, c.candidateSet, k)
}

// Fractions returns the fractions of time of all jobs of s, by arrival. They hold until
// it is called again.
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
	With    map[spec.JobID]spec.JobID // the other one of each pair, both ways
	matches *matches
}

// Runs reports whether two jobs of the snapshot can run together on a group.
func (p *Pairs) Runs(c spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	_, _, o, err := p.matches.jobPair(c, a, b, group)
	return o != nil, err
}

// Pays reports whether two jobs make more together on a group than in turns.
func (p *Pairs) Pays(c spec.Cluster, a, b *spec.Job, group int) (bool, error) {
	return p.matches.pays(c, a, b, group)
}

// PlacePair returns the grants of two jobs that share devices of a group, nil if they
// find no room in free.
func (p *Pairs) PlacePair(c spec.Cluster, free *scheduler.Inventory, a, b *spec.Job, group int) (mine, its *scheduler.Grant) {
	x, y := p.matches.jobKind(a), p.matches.jobKind(b)
	if x == nil || y == nil {
		return nil, nil
	}
	return p.matches.pairTable.place(c, free, *x, *y, group, a.Devices)
}

// GroupOf returns the group of c that a node is in.
func GroupOf(c spec.Cluster, node int) int { return groupOf(c, node) }
