package candidate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Place returns a grant for the first candidate of w that fits in free, nil if none
// does.
func (f *Finder) Place(free *scheduler.Inventory, c spec.Cluster, j *spec.Job, w *Set) *scheduler.Grant {
	if w.Blind {
		return f.PlaceBlind(free, c, j)
	}
	for i := range w.Configs {
		if g := f.PlaceOption(free, j, &w.Configs[i]); g != nil {
			return g
		}
	}
	return nil
}

// PlaceOption returns a grant for o, nil if it does not fit in free.
func (f *Finder) PlaceOption(free *scheduler.Inventory, j *spec.Job, o *Config) *scheduler.Grant {
	slots, ok := f.Find(free, j, o)
	if !ok {
		return nil
	}
	return &scheduler.Grant{Job: j.ID, Plan: o.Plan, Shape: o.Shape, Slots: slots}
}

// Find returns free devices for o, with the larger of the host resources of j and o.
func (f *Finder) Find(free *scheduler.Inventory, j *spec.Job, o *Config) ([]scheduler.Slot, bool) {
	if free.FreeIn(o.Group) < o.Devices {
		return nil, false
	}
	need := j.Host.Max(o.Host)
	fitting := free.For(o.Group, need)
	staying := fitting.Staying(o.Group, longest(j, o.Rate))
	slots, ok := f.placer.Place(staying, o.Group, o.Shape)
	if !ok && staying != fitting {
		slots, ok = f.placer.Place(fitting, o.Group, o.Shape)
	}
	if need != (spec.Host{}) {
		for i := range slots {
			slots[i].Host = need.Times(slots[i].Devices)
		}
	}
	return slots, ok
}

// longest returns the time that all of j takes at a rate, the longest possible if it is unknown.
func longest(j *spec.Job, rate float64) time.Duration {
	sec := j.Duration.Seconds()
	if j.Steps > 0 && rate > 0 {
		sec = j.Steps / rate
	}
	if sec > 0 && sec < float64(math.MaxInt64)/1e9 {
		return time.Duration(sec * 1e9)
	}
	return math.MaxInt64
}

// Lay returns the shape that the placer would give j on a number of devices of a group.
func (f *Finder) Lay(free *scheduler.Inventory, group int, j *spec.Job, devices int) (spec.Shape, bool) {
	return f.placer.Lay(free.For(group, j.Host), group, devices)
}

// bySpeed returns the groups, fastest first by Deps.Speeds.
func (f *Finder) bySpeed(c spec.Cluster) []int {
	if f.order == nil {
		speed := func(gi int) float64 {
			if v, ok := f.speeds[c.Groups[gi].Accelerator.Name]; ok {
				return v
			}
			return 1
		}
		for gi := range c.Groups {
			f.order = append(f.order, gi)
		}
		slices.SortStableFunc(f.order, func(x, y int) int { return cmp.Compare(speed(y), speed(x)) })
	}
	return f.order
}

// PlaceBlind places a blind job on the fastest group with room that it accepts, the
// first of equals.
func (f *Finder) PlaceBlind(free *scheduler.Inventory, c spec.Cluster, j *spec.Job) *scheduler.Grant {
	for _, gi := range f.bySpeed(c) {
		if !j.Accepts(&c.Groups[gi]) {
			continue
		}
		if g := f.PlaceBlindIn(free, gi, j); g != nil {
			return g
		}
	}
	return nil
}

// PlaceBlindIn is PlaceBlind in one group.
func (f *Finder) PlaceBlindIn(free *scheduler.Inventory, group int, j *spec.Job) *scheduler.Grant {
	shape, ok := f.Lay(free, group, j, j.Devices)
	if !ok {
		return nil
	}
	return f.PlaceOption(free, j, &Config{Group: group, Plan: OwnPlan(j), Shape: shape, Devices: j.Devices})
}

// PlaceIn is Place in one group.
func (f *Finder) PlaceIn(free *scheduler.Inventory, group int, j *spec.Job, w *Set) *scheduler.Grant {
	if w.Blind {
		return f.PlaceBlindIn(free, group, j)
	}
	for i := range w.Configs {
		if o := &w.Configs[i]; o.Group == group {
			if g := f.PlaceOption(free, j, o); g != nil {
				return g
			}
		}
	}
	return nil
}
