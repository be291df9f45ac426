package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// readOutages reads UP/DOWN[,TYPE=UP/DOWN...] or FILE.csv, the value of an option; nil for "".
func (s *Simulation) readOutages(f *failures, option, text string, notice time.Duration) (func(seed uint64) sim.Failures, error) {
	if text == "" {
		return nil, nil
	}
	if isTable(text) {
		r, err := f.readTable(option, text)
		if err != nil {
			return nil, err
		}
		table, err := sim.ReadOutages(r, text, s.Cluster.Nodes(), notice)
		if err != nil {
			return nil, invalidBecause(option, text, err)
		}
		return func(uint64) sim.Failures { return table }, nil
	}
	lives := map[string]sim.Lifetime{} // by accelerator, "" = all others
	for _, item := range strings.Split(text, ",") {
		kind, times, named := strings.Cut(item, "=")
		if !named {
			kind, times = "", item
		}
		up, down, _ := strings.Cut(times, "/")
		u, err1 := parseTime(up)
		d, err2 := parseTime(down)
		if err1 != nil || err2 != nil {
			return nil, invalid(option, text, ": %q is not UP/DOWN, mean times of at least a second each such as 30d/2h", times)
		}
		if _, twice := lives[kind]; twice {
			return nil, invalid(option, text, ": %q says it a second time", item)
		}
		if named && !s.hasAccelerator(kind) {
			return nil, invalid(option, text, ": the cluster is %s, without %s", ClusterText(s.Cluster), kind)
		}
		lives[kind] = sim.Lifetime{Up: u, Down: d, Notice: notice}
	}
	of := func(g *spec.NodeGroup) sim.Lifetime {
		if l, ok := lives[g.Accelerator.Name]; ok {
			return l
		}
		return lives[""]
	}
	drawn, err := sim.NewLifetimes(s.Cluster, 0, of)
	drawn.Stream = option
	return func(seed uint64) sim.Failures {
		l := drawn
		l.Seed = seed
		return l
	}, err
}

// defaultNotice is the notice of spot capacity of AWS: an interruption notice is given two minutes
// before ("Spot Instance interruption notices", Amazon EC2 User Guide).
const defaultNotice = 2 * time.Minute

// noticeKey separates the notice from the outages of option spot.
const noticeKey = ":notice="

// cutNotice returns the value of option spot without its notice.
func cutNotice(text string) string {
	outages, _, _ := strings.Cut(text, noticeKey)
	return outages
}

// readSpot reads the outages of spot capacity, like those of failures, with an optional notice.
func (s *Simulation) readSpot(f *failures, text string) (func(seed uint64) sim.Failures, error) {
	notice := defaultNotice
	outages, given, has := strings.Cut(text, noticeKey)
	if has {
		v, err := strconv.ParseFloat(given, 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return nil, invalid("spot", text, ": notice %q is not a number of seconds of at least 0", given)
		}
		notice = time.Duration(v * float64(time.Second))
	}
	if has && outages == "" {
		return nil, invalid("spot", text, ": want UP/DOWN or FILE.csv before the notice")
	}
	return s.readOutages(f, "spot", outages, notice)
}

// readMaintenance reads NODES@FROM/TO[,...], or FILE.csv of outages; nil for "".
func (s *Simulation) readMaintenance(f *failures, text string) (sim.OutageTable, error) {
	if text == "" {
		return nil, nil
	}
	if isTable(text) {
		r, err := f.readTable("maintenance", text)
		if err != nil {
			return nil, err
		}
		table, err := sim.ReadOutages(r, text, s.Cluster.Nodes(), sim.Planned)
		if err != nil {
			return nil, invalidBecause("maintenance", text, err)
		}
		return table, nil
	}
	out := sim.OutageTable{}
	for _, item := range strings.Split(text, ",") {
		nodes, window, err := s.parseWindow(item)
		if err != nil {
			return nil, invalid("maintenance", text, ": %v", err)
		}
		for _, node := range nodes {
			if slices.ContainsFunc(out[node], func(o sim.Outage) bool { return o.Down < window.Up && window.Down < o.Up }) {
				return nil, invalid("maintenance", text, ": node %d has two windows at the same time", node)
			}
			out[node] = append(out[node], window)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b sim.Outage) int { return cmp.Compare(a.Down, b.Down) })
	}
	return out, nil
}

// parseWindow reads NODES@FROM/TO: NODES is a node, a range such as 0-3, or an accelerator; an
// empty TO means for good.
func (s *Simulation) parseWindow(item string) (nodes []int, window sim.Outage, err error) {
	which, times, ok := strings.Cut(item, "@")
	from, to, both := strings.Cut(times, "/")
	if !ok || !both {
		return nil, window, fmt.Errorf("%q is not NODES@FROM/TO such as 0-3@6h/8h", item)
	}
	window = sim.Outage{Up: math.MaxInt64, Notice: sim.Planned}
	if from != "0" {
		if window.Down, err = parseTime(from); err != nil {
			return nil, window, fmt.Errorf("%q: from %w, want a number with unit s, m, h or d", item, err)
		}
	}
	if to != "" {
		if window.Up, err = parseTime(to); err != nil {
			return nil, window, fmt.Errorf("%q: to %w, want a number with unit s, m, h or d", item, err)
		}
	}
	if window.Up <= window.Down {
		return nil, window, fmt.Errorf("%q ends at %s, which is not after %s", item, to, from)
	}
	nodes, err = s.parseNodes(which)
	return nodes, window, err
}

// parseNodes reads a node, a range of nodes, or the name of an accelerator.
func (s *Simulation) parseNodes(text string) (nodes []int, err error) {
	if text != "" && s.hasAccelerator(text) {
		first := 0
		for _, g := range s.Cluster.Groups {
			for i := range g.Count {
				if g.Accelerator.Name == text {
					nodes = append(nodes, first+i)
				}
			}
			first += g.Count
		}
		return nodes, nil
	}
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if errors.Join(err1, err2) != nil || first < 0 || last < first || last >= s.Cluster.Nodes() {
		return nil, fmt.Errorf("%q is neither nodes in 0..%d, such as 0-3, nor a type of the cluster, %s", text, s.Cluster.Nodes()-1, ClusterText(s.Cluster))
	}
	for node := first; node <= last; node++ {
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// parseTime reads a time of at least a second, at most thirty years: a number with unit
// s, m, h or d, without one in seconds.
func parseTime(text string) (time.Duration, error) {
	unit := time.Second
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = number, u
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v*unit.Seconds() >= 1 && v*unit.Seconds() < 1e9) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	return time.Duration(v * float64(unit)), nil
}
