package profiler

import "context"

// Estimate returns how far a run is and the points that are still open, in
// canonical order, each with the seconds it is expected to hold its devices.
// Nothing is chosen: Why and Gain are empty.
func Estimate(ctx context.Context, c Campaign, o Options) (State, []Step, error) {
	r, err := newRun(ctx, c, o)
	if err != nil {
		return State{}, nil, err
	}
	h := r.habits()
	var steps []Step
	for i, p := range r.points {
		if b := r.byKey[p.Config.Key()]; r.open(i) {
			steps = append(steps, Step{Point: p, HalfWidth: b.halves[i], Seconds: r.seconds(b, i, h)})
		}
	}
	return r.state(), steps, nil
}
