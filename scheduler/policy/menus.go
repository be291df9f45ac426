package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// menus is what kinds of jobs may have of each group of a cluster: their own
// device count at their own plan, or with plans, several counts, each at its
// best believed plan.
type menus struct {
	*belief
	quirks  compat.Quirks
	plans   bool
	known   map[submittedKey]*menu
	pricing pricing   // scratch of Shares.byPrices
	shares  []Share   // scratch of sharesOf
	x       []float64 // and of its fractions
}

// menu is what one kind of job may have.
type menu struct {
	ways    []Way
	options [][]option // of each way, fastest first; none for a blind one
	warning string     // what a user should know about it, "" if nothing

	revision int // belief.revision then
	priced   priced
}

func newMenus(d Deps) (*menus, error) {
	plans, err := d.flag("plan", false)
	return &menus{belief: newBelief(d), quirks: d.Quirks, plans: plans, known: map[submittedKey]*menu{}}, err
}

// of returns what j may have; a menu without ways if it is believed to run
// nowhere.
func (o *menus) of(ctx context.Context, c spec.Cluster, j *spec.Job) (*menu, error) {
	key := submittedKey{kind(j), j.Plan, j.Devices, j.Accelerator}
	revision := o.revision(c, j)
	if f, ok := o.known[key]; ok && f.revision == revision {
		return f, nil
	}
	f, err := o.find(ctx, c, j)
	if err == nil {
		f.revision = revision
		o.known[key] = f
	}
	return f, err
}

func (o *menus) find(ctx context.Context, c spec.Cluster, j *spec.Job) (*menu, error) {
	if o.plans {
		cv, err := o.curve(ctx, c, j)
		if err != nil {
			return nil, err
		}
		if len(cv.options) > 0 {
			return newMenu(slices.DeleteFunc(slices.Clone(cv.options), func(p option) bool { return !worthListing(p.devices, j.Devices) })), nil
		}
	}
	w, err := o.asSubmitted(ctx, c, j)
	if err != nil {
		return nil, err
	}
	if !w.blind {
		f := newMenu(w.options)
		f.warning = w.warning
		return f, nil
	}
	return o.blind(ctx, c, j, w.warning)
}

// worthListing keeps the sizes few: what was asked for, and powers of two.
func worthListing(devices, asked int) bool { return devices == asked || devices&(devices-1) == 0 }

// newMenu sorts options into ways.
func newMenu(options []option) *menu {
	options = slices.Clone(options)
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.devices, b.devices), cmp.Compare(b.rate, a.rate))
	})
	f := &menu{}
	for _, p := range options {
		if n := len(f.ways); n == 0 || f.ways[n-1].Group != p.group || f.ways[n-1].Devices != p.devices {
			f.ways = append(f.ways, Way{Group: p.group, Devices: p.devices, Rate: p.rate})
			f.options = append(f.options, nil)
		}
		last := len(f.ways) - 1
		f.options[last] = append(f.options[last], p)
	}
	return f
}

// blind lists every group that j accepts and fits into, all alike, unless the
// oracle says of each that j does not run there.
func (o *menus) blind(ctx context.Context, c spec.Cluster, j *spec.Job, warning string) (*menu, error) {
	f := &menu{warning: warning}
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !accepts(j, g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		if o.oracle != nil && j.Batch() > 0 {
			_, err := o.oracle.Rank(ctx, request(j, g, j.Devices))
			if errors.Is(err, planner.ErrInfeasible) {
				continue
			}
		}
		f.ways = append(f.ways, Way{Group: gi, Devices: j.Devices, Rate: 1})
		f.options = append(f.options, nil)
	}
	if len(f.ways) == 0 {
		f.warning = fmt.Sprintf("%s on %s runs on none of the cluster's, such jobs wait", j.Model.Name, spec.Count(j.Devices, "device"))
	}
	return f, nil
}

// place returns a grant of way k of a menu, nil if it finds no room.
func (o *menus) place(free *scheduler.Inventory, j *spec.Job, f *menu, k int) *scheduler.Grant {
	w := f.ways[k]
	if len(f.options[k]) > 0 {
		for i := range f.options[k] {
			if g := o.placeOption(free, j, &f.options[k][i]); g != nil {
				return g
			}
		}
		return nil
	}
	shape, ok := o.lay(free, w.Group, j, w.Devices)
	if !ok {
		return nil
	}
	return o.placeOption(free, j, &option{group: w.Group, plan: ownPlan(j), shape: shape, devices: w.Devices})
}
