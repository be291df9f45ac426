package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler/live/recording"
	"github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// recorded is a recording of pacer schedule that is replayed.
type recorded struct {
	*recording.Recording
	truth     recording.Truth
	elsewhere bool // on another cluster
}

// readRecording reads o.Replay if it is a recording, which has its own jobs and cluster; else it
// returns nil.
func (o *Options) readRecording() (*recorded, error) {
	if o.Replay == "" {
		return nil, nil
	}
	f, err := os.Open(o.Replay)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	begins := make([]byte, 64)
	n, err := f.ReadAt(begins, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !recording.Is(begins[:n]) {
		return nil, nil
	}
	for _, name := range []string{"workload", "load-scale"} {
		for _, s := range settings {
			if s.name == name && *s.value(o) != "" {
				return nil, invalid("replay", o.Replay, "is a recording, with jobs of its own: leave {%s} out", fieldName(name))
			}
		}
	}
	window, err := trace.ParseWindow(o.Window)
	from, to, byTime := window.Times()
	if err != nil || !byTime {
		return nil, invalid("window", o.Window, "is not two ascending times since the recording began, such as 7d-14d")
	}
	read, err := recording.Read(f, o.Replay, recording.Window{From: from, To: to})
	if err != nil {
		return nil, invalidBecause("replay", o.Replay, err)
	}
	r := &recorded{Recording: read, elsewhere: o.Cluster != ""}
	o.Workload, o.Given.Jobs = o.Replay, read.Requests()
	if !r.elsewhere {
		o.Given.Cluster = read.Cluster
	}
	warn(o, "replay", "notes", read.Notes())
	return r, nil
}

// useRecording makes the jobs with a whole life count.
func (s *Simulation) useRecording() error {
	r := s.recorded
	only := report.JobSet{}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Counts() && s.Score.Has(j.ID) {
			only[j.ID] = true
		}
	}
	if len(only) == 0 {
		return noAnswer("replay", s.options.Replay, "no job of %s began and ended in it: record for longer", s.options.Replay)
	}
	s.Score.Only, s.composition.even = &only, r.Last.Even
	return nil
}

// calibrate finds the true speeds of recorded jobs.
func (s *Simulation) calibrate(ctx context.Context) (err error) {
	if s.recorded == nil {
		return nil
	}
	if s.truth.tables != nil || s.truth.servers != nil {
		return invalid("truth", s.truth.Name, "is not for the jobs of a recording: use fitted:FAMILY or duration")
	}
	s.recorded.truth, err = s.recorded.Calibrate(ctx, s.truth.truth(s.recorded.Cluster, s.Seed), s.Jobs)
	if err != nil {
		err = noAnswer("replay", s.options.Replay, "{truth} %s: %w", s.truth.Name, err)
	}
	if all := s.recorded.truth.Relative; len(all) > 0 && err == nil && s.truth.predictor != nil {
		warn(&s.options, "replay", "", []string{fmt.Sprintf("%s that reported progress ran at %.2g times the speed of %s, median; nine in ten at %.2g to %.2g times",
			spec.Count(len(all), "job"), stats.Median(all), s.truth.Name, stats.NearestRank(all, 0.05), stats.NearestRank(all, 0.95))})
	}
	return err
}

// startCost is the default of StartCost: what the controller expected.
func (r *recorded) startCost() time.Duration {
	return time.Duration(r.Last.StartSec * float64(time.Second))
}

// recordedFailures takes nodes down as they were, unless options say otherwise, gives devices to jobs of others, and cancels
// jobs. On another cluster jobs are cancelled only.
func (s *Simulation) recordedFailures() {
	r, f := s.recorded, &s.failures
	if r == nil {
		return
	}
	f.cancelled = r.Cancellations()
	if r.elsewhere {
		return
	}
	f.others = r.Usage
	if f.outages == nil && len(r.Failures) > 0 {
		f.outages = func(uint64) sim.Failures { return r.Failures }
	}
	if f.windows == nil && len(r.Drains) > 0 {
		f.windows = r.Drains
	}
	if f.text == "none" {
		f.text = "as recorded"
	}
}

// recordedRun returns what happened.
func (s *Simulation) recordedRun(ctx context.Context) (*sim.Result, error) {
	first := s.Runs()[0]
	config, err := first.Config(ctx)
	if err != nil {
		return nil, err
	}
	out := s.recorded.Result(s.Jobs)
	out.TimeAlone(ctx, config)
	return out, nil
}
