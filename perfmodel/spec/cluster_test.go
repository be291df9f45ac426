package spec

import (
	"math"
	"strings"
	"testing"
)

func TestLinkOf(t *testing.T) {
	c := Cluster{Groups: []NodeGroup{
		{Count: 2, Devices: 8, Link: Link{IntraBps: 9, InterBps: 5}},
		{Count: 4, Devices: 8, Link: Link{IntraBps: 9}, Racks: Racks{Nodes: 2, Bps: 3}},
		{Count: 4, Devices: 8, Link: Link{InterBps: 2}, Racks: Racks{Nodes: 2, Bps: 3}},
	}}
	for _, w := range []struct {
		first, last int
		want        Link
	}{
		{0, 1, Link{IntraBps: 9, InterBps: 5}}, // no racks
		{2, 3, Link{IntraBps: 9}},              // within one rack
		{3, 4, Link{IntraBps: 9, InterBps: 3}}, // across racks, rate within a rack unknown
		{6, 9, Link{InterBps: 2}},              // across racks, rate within a rack lower
		{10, 11, Link{}},                       // no such nodes
	} {
		if got := c.LinkOf(w.first, w.last); got != w.want {
			t.Errorf("nodes %d to %d: %+v, want %+v", w.first, w.last, got, w.want)
		}
	}
}

func TestClusterRefusesRacks(t *testing.T) {
	for _, r := range []Racks{{Nodes: 2}, {Bps: 1}, {Nodes: -1, Bps: 1}, {Nodes: 2, Bps: math.Inf(1)}, {Nodes: 2, Bps: math.NaN()}} {
		c := Cluster{Groups: []NodeGroup{{Count: 1, Devices: 1, Racks: r}}}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "racks of") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
