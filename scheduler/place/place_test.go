package place

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// inventory returns nodes of 8 devices with the given numbers of free ones.
func inventory(free ...int) *scheduler.Inventory {
	inv := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: len(free), Devices: 8}}})
	for node, n := range free {
		if n < 8 {
			inv.Take([]scheduler.Slot{{Node: node, Devices: 8 - n}})
		}
	}
	return inv
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		placer string
		free   []int
		want   string
		slots  []scheduler.Slot // nil = does not fit
	}{
		{"packed", []int{8, 3, 4}, "3", []scheduler.Slot{{Node: 1, Devices: 3}}},                          // tightest
		{"packed", []int{8, 4, 4}, "2", []scheduler.Slot{{Node: 1, Devices: 2}}},                          // ties: lower node
		{"packed", []int{8, 5, 4}, "4+4", []scheduler.Slot{{Node: 1, Devices: 4}, {Node: 2, Devices: 4}}}, // whole node stays empty
		{"packed", []int{8, 3, 8}, "8+8", []scheduler.Slot{{Node: 0, Devices: 8}, {Node: 2, Devices: 8}}}, //
		{"packed", []int{4, 8}, "8+4", []scheduler.Slot{{Node: 0, Devices: 4}, {Node: 1, Devices: 8}}},    // ascending by node
		{"packed", []int{8, 3}, "4+4", nil},                                                               // not twice on one node
		{"packed", []int{7, 7}, "8", nil},                                                                 //
		{"spread", []int{4, 8, 5}, "3", []scheduler.Slot{{Node: 1, Devices: 3}}},                          // emptiest
		{"spread", []int{4, 8, 5}, "2+2", []scheduler.Slot{{Node: 1, Devices: 2}, {Node: 2, Devices: 2}}}, //
		{"spread", []int{0, 8, 0}, "4+4", nil},                                                            //
		{"emptiest", []int{4, 8, 8}, "3", []scheduler.Slot{{Node: 1, Devices: 3}}},                        // ties: lower node
		{"emptiest", []int{4, 8, 5}, "8+2", []scheduler.Slot{{Node: 1, Devices: 8}, {Node: 2, Devices: 2}}},
		{"scattered", []int{2, 3, 8}, "3", []scheduler.Slot{{Node: 1, Devices: 3}}}, // first with room
		{"scattered", []int{1, 8, 2}, "2+1", []scheduler.Slot{{Node: 0, Devices: 1}, {Node: 1, Devices: 2}}},
		{"topology", []int{8, 0, 4, 4}, "4+4", []scheduler.Slot{{Node: 2, Devices: 4}, {Node: 3, Devices: 4}}}, // neighbours
		{"topology", []int{4, 8, 8, 4}, "4+4", []scheduler.Slot{{Node: 0, Devices: 4}, {Node: 1, Devices: 4}}}, // least left, then first
		{"topology", []int{8, 8, 4, 4}, "4+4", []scheduler.Slot{{Node: 2, Devices: 4}, {Node: 3, Devices: 4}}}, // least left
		{"topology", []int{8, 3, 4}, "3", []scheduler.Slot{{Node: 1, Devices: 3}}},                             // as packed
		{"topology", []int{8, 3, 3}, "8+4", nil},
	} {
		p, err := Lookup(c.placer)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := spec.ParseShape(c.want)
		if err != nil {
			t.Fatal(err)
		}
		free := inventory(c.free...)
		got, ok := p.Place(free, 0, shape)
		if diff := cmp.Diff(c.slots, got); diff != "" || ok != (c.slots != nil) {
			t.Errorf("%s: %s on %v (-want +got):\n%s", c.placer, c.want, c.free, diff)
		}
		if diff := cmp.Diff(c.free, free.Free); diff != "" {
			t.Errorf("%s: Place took devices:\n%s", c.placer, diff)
		}
	}
}

// Topology stays in a rack of three nodes if it can, even if nodes of two racks are closer
// to each other, and else uses several racks.
func TestRacks(t *testing.T) {
	p, err := Lookup("topology")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free []int
		want string
		on   []int // nodes
	}{
		{[]int{4, 0, 4, 4}, "4+4", []int{0, 2}},
		{[]int{0, 0, 4, 4, 8, 4}, "4+4", []int{3, 4}},
		{[]int{0, 0, 4, 4, 0, 0, 4}, "4+4", []int{2, 3}},
		{[]int{4, 4, 4, 4}, "4+4+4+4", []int{0, 1, 2, 3}},
		{[]int{0, 0, 0, 0, 0, 0, 4, 4}, "4+4", []int{6, 7}},
	} {
		inv := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: len(c.free), Devices: 8, Racks: spec.Racks{Nodes: 3, Bps: 1}}}})
		for node, n := range c.free {
			if n < 8 {
				inv.Take([]scheduler.Slot{{Node: node, Devices: 8 - n}})
			}
		}
		shape, err := spec.ParseShape(c.want)
		if err != nil {
			t.Fatal(err)
		}
		slots, _ := p.Place(inv, 0, shape)
		var on []int
		for _, s := range slots {
			on = append(on, s.Node)
		}
		if diff := cmp.Diff(c.on, on); diff != "" {
			t.Errorf("%s on %v (-want +got):\n%s", c.want, c.free, diff)
		}
	}
}

func TestLay(t *testing.T) {
	for _, c := range []struct {
		placer  string
		free    []int
		devices int
		want    string // "" = does not fit
	}{
		{"packed", []int{8, 3, 4}, 6, "6"},
		{"packed", []int{5, 3, 4}, 6, "5+1"},
		{"packed", []int{5, 3, 4}, 12, "5+4+3"},
		{"packed", []int{5, 3, 4}, 13, ""},
		{"emptiest", []int{5, 3, 4}, 10, "5+4+1"},
		{"packed", []int{5}, 0, ""},
		{"spread", []int{8, 8, 8, 8}, 6, "2+2+1+1"},
		{"spread", []int{1, 8, 8}, 7, "3+3+1"},
		{"spread", []int{1, 0, 8}, 9, "8+1"},
		{"scattered", []int{3, 2, 8}, 4, "3+1"},
		{"scattered", []int{3, 2, 8}, 14, ""},
		{"consolidated", []int{4, 4, 8}, 8, "8"},
		{"consolidated", []int{4, 4, 7}, 8, ""}, // waits
		{"consolidated", []int{8, 2, 8}, 10, "8+2"},
		{"consolidated", []int{7, 7, 7}, 10, ""},
	} {
		p, _ := Lookup(c.placer)
		shape, ok := p.Lay(inventory(c.free...), 0, c.devices)
		if shape.Devices != c.want || ok != (c.want != "") {
			t.Errorf("%s: %d on %v: %q %v, want %q", c.placer, c.devices, c.free, shape.Devices, ok, c.want)
		}
	}
}

// Every placer can place the shapes of its Lay, exactly and in the requested group.
func TestPlacersProperty(t *testing.T) {
	for _, info := range All() {
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				inv := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 8}, {Count: 4, Devices: 4}}})
				for node := range inv.Free {
					if n := rapid.IntRange(0, inv.Free[node]).Draw(t, "busy"); n > 0 {
						inv.Take([]scheduler.Slot{{Node: node, Devices: n}})
					}
				}
				group := rapid.IntRange(0, 1).Draw(t, "group")
				n := rapid.IntRange(1, 24).Draw(t, "devices")
				p := info.New()
				shape, ok := p.Lay(inv, group, n)
				if enough := n <= inv.FreeIn(group); ok && !enough || !ok && enough && !info.Picky {
					t.Fatalf("Lay says %v for %d of %d free", ok, n, inv.FreeIn(group))
				}
				if !ok {
					return
				}
				slots, ok := p.Place(inv, group, shape)
				if !ok || shape.Total() != n {
					t.Fatalf("no place for %s, laid out for %d", shape.Devices, n)
				}
				var counts []int
				for _, s := range slots {
					counts = append(counts, s.Devices)
					if inv.Group[s.Node] != group {
						t.Fatalf("node %d is not in group %d", s.Node, group)
					}
				}
				if got := spec.NewShape(counts...); got != shape || !inv.Take(slots) {
					t.Fatalf("slots %v of shape %s for %s", slots, got.Devices, shape.Devices)
				}
			})
		})
	}
}

func TestLookup(t *testing.T) {
	if _, err := Lookup("diagonal"); err == nil || !strings.Contains(err.Error(), "packed, spread") {
		t.Errorf("unknown placement: %v", err)
	}
}

// Consolidated keeps the candidates on the fewest nodes for each device count. Sensitive
// leaves out those that are more than a tenth slower than these.
func TestChoose(t *testing.T) {
	candidates := []scheduler.Candidate{
		{Shape: spec.NewShape(8), Rate: 10}, {Shape: spec.NewShape(4, 4), Rate: 9.5}, {Shape: spec.NewShape(2, 2, 2, 2), Rate: 8},
		{Shape: spec.NewShape(2, 2), Rate: 5}, {Group: 1, Shape: spec.NewShape(4, 4), Rate: 3},
	}
	for name, want := range map[string]string{"consolidated": "8 2+2 4+4", "sensitive": "8 4+4 2+2 4+4"} {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range p.(scheduler.Chooser).Choose(candidates) {
			got = append(got, w.Shape.Devices)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s chooses %s, want %s", name, s, want)
		}
	}
}
