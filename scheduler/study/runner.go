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

// Setup is the configuration of a cell, before Scenario changes its jobs and truth.
type Setup struct {
	Config     sim.Config // used by this run only
	Score      report.Score
	Candidates Candidates // nil = unknown, so there are no bounds
	// Identity is everything else that determines the result, besides cluster, jobs,
	// policy name, score and scenario: settings, and digests of files.
	Identity []string
	// Reference returns the run that guarantees are judged by, false if there is none; nil =
	// none.
	Reference func(context.Context) (sim.Config, bool)
}

// Runner runs the cells of a study and stores every record at once.
type Runner struct {
	Study   *Study
	Dir     *Dir
	Workers int // runs at a time, at least 1
	// Shard is the part of the cells to run, the zero value all. The outcomes of other cells are zero.
	Shard Shard
	// Setup returns the configuration of a cell. It is called concurrently.
	Setup func(ctx context.Context, c Cell) (Setup, error)
	// Progress, if set, is called for every cell that is done, one call at a time.
	Progress func(Progress)

	references references
}

// Shard is a part of the cells of a study: those with a number that, divided by Of, leaves the remainder Index. Of 0 is all.
type Shard struct{ Index, Of int }

func (s Shard) has(cell int) bool { return s.Of == 0 || cell%s.Of == s.Index }

// Progress reports a cell that is done.
type Progress struct {
	Cell        Cell
	Done, Total int
	Kept        bool  // the record was stored before
	Err         error // why the run failed
}

// Outcome is a cell with its record.
type Outcome struct {
	Cell   Cell
	Record Record
	Err    error // why the run failed
}

// Run runs the cells of the shard and returns their outcomes in the order of Study.Cells. The error
// of a run is in its Outcome. Run returns an error if it did not try every cell,
// because ctx ended or a record cannot be stored.
func (r *Runner) Run(ctx context.Context) ([]Outcome, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cells := r.Study.Cells()
	out := make([]Outcome, len(cells))
	next := make(chan int)
	var wait sync.WaitGroup
	total := 0
	for i := range cells {
		if r.Shard.has(i) {
			total++
		}
	}
	notify := r.reporter(total)
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
					notify(out[i], kept)
				}
			}
		})
	}
	for i := range cells {
		if !r.Shard.has(i) {
			continue
		}
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

// errKeep ends a study: records cannot be stored.
var errKeep = errors.New("study: records cannot be stored")

// reporter returns a function that counts cells and calls Progress.
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

// cell returns the record of a cell. kept = it was stored before.
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
	rec, err = r.simulate(ctx, s, sc)
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

// simulate runs a cell. The record has no wall time, which differs between equal runs.
func (r *Runner) simulate(ctx context.Context, s Setup, sc Scenario) (Record, error) {
	result, err := sim.Run(ctx, s.Config)
	if err != nil {
		return Record{}, err
	}
	bounds, err := boundsOf(ctx, &s.Config, result, s.Score, s.Candidates)
	if err != nil {
		return Record{}, err
	}
	result.TimeAlone(ctx, s.Config)
	ends, err := r.references.ends(ctx, s, sc)
	if err != nil {
		return Record{}, err
	}
	result.SetBackfill(ends)
	rec := NewRecord(result, s.Score)
	rec.Bounds = bounds
	return rec, nil
}

// NewRecord returns the record of a run, without key, description and bounds.
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
