package spec

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShape(t *testing.T) {
	for _, tc := range []struct {
		in, want           string
		total, nodes, m, l int
	}{
		{"8+8", "8+8", 16, 2, 8, 8},
		{"2x8", "8+8", 16, 2, 8, 8},
		{"1+4+2", "4+2+1", 7, 3, 4, 1},
		{"2x8+3", "8+8+3", 19, 3, 8, 3},
	} {
		s, err := ParseShape(tc.in)
		if err != nil {
			t.Fatal(err)
		}
		if s.Devices != tc.want || s.Total() != tc.total || s.Nodes() != tc.nodes || s.Most() != tc.m || s.Least() != tc.l {
			t.Errorf("%s: %s total %d nodes %d most %d least %d", tc.in, s.Devices, s.Total(), s.Nodes(), s.Most(), s.Least())
		}
	}
	for _, bad := range []string{"", "8+", "0", "-1", "x8", "8x", "1.5", "999999999999x8"} {
		if s, err := ParseShape(bad); err == nil {
			t.Errorf("%q parsed to %v", bad, s)
		}
	}
	if got := Packed(19, 8); got.Devices != "8+8+3" || got.String() != "2x8+3" {
		t.Errorf("Packed(19, 8) = %s, %s", got.Devices, got)
	}
}

func TestShapeIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.IntRange(1, 99), 1, 12).Draw(t, "nodes")
		s := NewShape(nodes...)
		shuffled := slices.Clone(nodes)
		slices.Reverse(shuffled)
		if NewShape(shuffled...) != s {
			t.Fatalf("order matters: %v", nodes)
		}
		if short, err := ParseShape(s.String()); err != nil || short != s {
			t.Fatalf("%s, written %s, came back as %s, %v", s.Devices, s, short.Devices, err)
		}
		again, err := ParseShape(s.Devices)
		if err != nil || again != s || !slices.Equal(again.PerNode(), s.PerNode()) {
			t.Fatalf("%s came back as %s, %v", s.Devices, again.Devices, err)
		}
	})
}

func TestParseCluster(t *testing.T) {
	resolve := func(name string, _ int) (NodeGroup, error) {
		return NodeGroup{Accelerator: Accelerator{Name: name}}, nil
	}
	for _, tc := range []struct {
		in             string
		nodes, devices int
		names          string
	}{
		{"8x8xA800", 8, 64, "A800"},
		{"20x4", 20, 80, ""},
		{"6x4xT4,3x8xRTX2080Ti,2x8xA100-40GB", 11, 64, "T4 RTX2080Ti A100-40GB"},
		{"v100=36,p100=36,k80=36", 108, 108, "v100 p100 k80"},
	} {
		c, err := ParseCluster(tc.in, resolve)
		if err != nil {
			t.Errorf("%s: %v", tc.in, err)
			continue
		}
		var names []string
		for _, g := range c.Groups {
			names = append(names, g.Accelerator.Name)
		}
		if c.Nodes() != tc.nodes || c.Devices() != tc.devices || strings.Join(names, " ") != tc.names {
			t.Errorf("%s: %d nodes, %d devices, %v", tc.in, c.Nodes(), c.Devices(), names)
		}
	}
	for _, bad := range []string{"", "8", "0x8xA800", "8x0", "8x8x", "=3", "v100=0", "axb", "8x8xA800,"} {
		if c, err := ParseCluster(bad, resolve); err == nil {
			t.Errorf("%q parsed to %+v", bad, c)
		}
	}
}
