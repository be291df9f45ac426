package study

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Setup is a cell ready to run, but for what the study does to its jobs.
type Setup struct {
	Config  sim.Config // Jobs and Truth before Scenario; used by this run alone
	Score   report.Score
	Choices Choices // nil = grants cannot be listed, so that there are no bounds
	// Identity is all that decides the outcome beside cluster, jobs, policy name,
	// score and scenario: settings, and digests of what stands behind names.
	Identity []string
}

// Runner runs the cells of a study and keeps every result as soon as there is
// one.
type Runner struct {
	Study   *Study
	Dir     *Dir
	Workers int // runs at a time, at least 1
	// Setup makes a cell ready. It is called from several goroutines.
	Setup func(ctx context.Context, c Cell) (Setup, error)
	// Progress, if set, is told of every cell that is done, one at a time.
	Progress func(Progress)
}

// Progress says that a cell is done.
type Progress struct {
	Cell        Cell
	Done, Total int
	Kept        bool  // was there from before
	Err         error // why it could not be run
}

// Outcome is a cell with what became of it.
type Outcome struct {
	Cell   Cell
	Record Record
	Err    error // why it could not be run
}

// Run runs all cells and returns their outcomes in the order of Study.Cells.
// What cannot be run is in its Outcome; an error means that not every cell was
// tried, because ctx ended or results cannot be kept.
func (r *Runner) Run(ctx context.Context) ([]Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cells := r.Study.Cells()
	out := make([]Outcome, len(cells))
	next := make(chan int)
	var wait sync.WaitGroup
	tell := r.reporter(len(cells))
	for range max(r.Workers, 1) {
		wait.Go(func() {
			for i := range next {
				kept := false
				out[i].Cell = cells[i]
				out[i].Record, kept, out[i].Err = r.cell(ctx, cells[i])
				if err := out[i].Err; errors.Is(err, errKeep) {
					stop(err)
				}
				if ctx.Err() == nil {
					tell(out[i], kept)
				}
			}
		})
	}
	for i := range cells {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wait.Wait()
	return out, context.Cause(ctx)
}

// errKeep is that results cannot be kept: no use in running more.
var errKeep = errors.New("study: results cannot be kept")

// reporter returns what counts the cells that are done and tells of each.
func (r *Runner) reporter(total int) func(Outcome, bool) {
	var mu sync.Mutex
	done := 0
	return func(o Outcome, kept bool) {
		mu.Lock()
		defer mu.Unlock()
		done++
		if r.Progress != nil {
			r.Progress(Progress{Cell: o.Cell, Done: done, Total: total, Kept: kept, Err: o.Err})
		}
	}
}

// cell returns the record of a cell, and whether it was there.
func (r *Runner) cell(ctx context.Context, c Cell) (rec Record, kept bool, err error) {
	s, err := r.Setup(ctx, c)
	if err != nil {
		return rec, false, err
	}
	sc := r.Study.scenario(c)
	if s.Config.Jobs, err = sc.Jobs(ctx, s.Config.Jobs, s.Config.Cluster, s.Config.Truth); err != nil {
		return rec, false, err
	}
	s.Config.Truth = sc.Truth(s.Config.Truth)
	key, err := keyOf(s.Config.Cluster, s.Config.Jobs, append([]string{
		s.Config.PolicyName, s.Score.String(), strconv.FormatUint(c.Seed, 10), strconv.FormatFloat(sc.Noise, 'g', -1, 64),
	}, s.Identity...))
	if err != nil {
		return rec, false, err
	}
	if rec, kept, err = r.Dir.Get(key); kept || err != nil {
		return rec, kept, err
	}
	rec, err = simulate(ctx, s)
	if err != nil {
		return rec, false, err
	}
	rec.Key, rec.Run = key, r.Study.Describe(c)
	if rec, err = r.Dir.Put(rec); err != nil {
		return rec, false, fmt.Errorf("%w: %w", errKeep, err)
	}
	return rec, false, nil
}

func (s *Study) scenario(c Cell) Scenario {
	return Scenario{Seed: c.Seed, Arrivals: s.Arrivals, Load: c.Load, Noise: s.Noise}
}

// simulate runs a cell. Its wall time is not kept: it is no function of it.
func simulate(ctx context.Context, s Setup) (Record, error) {
	result, err := sim.Run(ctx, s.Config)
	if err != nil {
		return Record{}, err
	}
	bounds, err := boundsOf(ctx, &s.Config, result, s.Score, s.Choices)
	if err != nil {
		return Record{}, err
	}
	rec := NewRecord(result, s.Score)
	rec.Bounds = bounds
	return rec, nil
}

// NewRecord returns what is kept of a run but for its name, without bounds.
func NewRecord(r *sim.Result, score report.Score) Record {
	rec := Record{Summary: report.Summarize(r, score), Bounds: NoBounds(), Ends: map[spec.JobID]report.Number{}}
	rec.Summary.Elapsed = report.Undefined()
	for _, j := range r.Jobs {
		if j.Job.Guaranteed && j.Finished && score.Has(j.Job.ID) {
			rec.Ends[j.Job.ID] = report.Number(j.End.Seconds())
		}
	}
	return rec
}
