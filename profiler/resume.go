package profiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// resume adds the stored rows. Points with rows of this run are done; other rows are used in fits if
// Options.Reuse is set.
func (r *run) resume() error {
	var mine []spec.Measurement
	for _, m := range r.o.Rows {
		if m.Source == r.c.Source() && m.Env[EnvRun] == r.label {
			mine = append(mine, m)
			continue
		}
		if k := r.byKey[m.Config.Key()]; r.o.Reuse && k != nil {
			k.add(m)
			k.reused++
		}
	}
	slices.SortStableFunc(mine, func(a, b spec.Measurement) int {
		return cmp.Or(cmp.Compare(pointNumber(a), pointNumber(b)), a.At.Compare(b.At), cmp.Compare(a.Origin, b.Origin))
	})
	for _, m := range mine {
		if err := r.sameRun(m); err != nil {
			return err
		}
		r.add(m)
	}
	r.resumed = len(r.rows)
	if r.o.Again {
		clear(r.done)
		clear(r.tries)
		clear(r.skips)
	}
	return nil
}

// sameRun returns an error if the row was measured on another machine, another network with the same name,
// another version of torch, or with another compile setting.
func (r *run) sameRun(row spec.Measurement) error {
	if r.c.Space.Measured {
		return nil
	}
	c, m := row.Config, r.o.Machine
	if c.Accelerator.Name != m.Accelerator.Name || c.Framework != m.Framework {
		return fmt.Errorf("profiler: campaign %s: run %s was measured on %s with %s, here is %s with %s: give this run another label",
			r.c.Name, r.label, c.Accelerator.Name, cmp.Or(c.Framework, "no framework"),
			m.Accelerator.Name, cmp.Or(m.Framework, "no framework"))
	}
	for _, now := range r.c.Models {
		if now.Name == c.Model.Name && trainedNetwork(now) != trainedNetwork(c.Model) {
			return fmt.Errorf("profiler: campaign %s: run %s was measured on a model %s with other values than now: give the model another name",
				r.c.Name, r.label, now.Name)
		}
	}
	return r.sameStack(row)
}

// sameStack compares the training stack. A point that failed early has fewer entries in Env.
func (r *run) sameStack(row spec.Measurement) error {
	if r.simulated() {
		return nil
	}
	was, is := row.Env[EnvTorch], r.o.Machine.Env[EnvTorch]
	if was != "" && is != "" && was != is {
		return fmt.Errorf("profiler: campaign %s: run %s was measured with torch %s, here is %s: give this run another label",
			r.c.Name, r.label, was, is)
	}
	if was, is := row.Env[EnvCommandHash], r.o.Machine.Env[EnvCommandHash]; was != is {
		return fmt.Errorf("profiler: campaign %s: run %s was measured with another command or other settings of it (%q), now it is %q: give this run another label",
			r.c.Name, r.label, row.Env[EnvCommand], r.o.Machine.Env[EnvCommand])
	}
	compiled := row.Env[EnvCompiled] != ""
	if compiled == r.c.Point.Compile || !compiled && row.Outcome != spec.OK {
		return nil
	}
	return fmt.Errorf("profiler: campaign %s: run %s was measured with compile: %t, now it is %t: give this run another label",
		r.c.Name, r.label, compiled, r.c.Point.Compile)
}

// trainedNetwork returns m without the fields that do not change the trained network.
func trainedNetwork(m spec.Model) spec.Model {
	m.KVHeads, m.HeadDim = m.KV(), m.Head()
	m.SeqLen, m.ParamCount, m.ActiveParamCount, m.FLOPsPerSample, m.Imbalance, m.NodeLimit = 0, 0, 0, 0, 0, 0
	return m
}

// pointNumber returns the number of a stored point, 0 if unknown.
func pointNumber(m spec.Measurement) int {
	n, err := strconv.Atoi(m.Env[EnvPoint])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// HeldSec returns the seconds that a stored point held its devices, launch included, 0 if unknown.
func HeldSec(m spec.Measurement) float64 {
	w, err := strconv.ParseFloat(m.Env[EnvWall], 64)
	if err != nil || !(w > 0) || math.IsInf(w, 0) {
		return 0
	}
	return w
}

// deviceSec returns the device time of the run so far.
func (r *run) deviceSec() float64 {
	sum := 0.0
	for _, m := range r.rows {
		sum += HeldSec(m) * float64(m.Config.RunDevices())
	}
	return sum
}

// wallSec returns the time of all sessions: the points of all sessions, and the time between points of this
// one. Points that are measured at the same time share it.
func (r *run) wallSec() float64 {
	sum := 0.0
	if r.onCluster() {
		n := max(r.o.Parallel, 1)
		for _, m := range r.rows[:r.resumed] {
			sum += HeldSec(m) / float64(n)
		}
		return sum + max(r.now().Sub(r.began).Seconds(), 0)
	}
	for _, m := range r.rows {
		sum += HeldSec(m)
	}
	return sum + max(r.now().Sub(r.began).Seconds()-r.inRunner, 0)
}
