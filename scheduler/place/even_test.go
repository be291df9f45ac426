package place

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func TestEven(t *testing.T) {
	inv := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 4}}})
	for _, name := range []string{"packed", "consolidated"} { // without and with Choose
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		e := Even(p)
		if _, chooses := e.(scheduler.Chooser); chooses != (name == "consolidated") {
			t.Errorf("%s chooses layouts: %v", name, chooses)
		}
		for devices, want := range map[int]string{1: "1", 4: "4", 6: "3+3", 8: "4+4", 9: "3+3+3", 12: "4+4+4", 5: "", 7: "", 13: ""} {
			shape, ok := e.Lay(inv, 0, devices)
			if shape.Devices != want || ok != (want != "") {
				t.Errorf("%s lays %d devices as %q, want %q", name, devices, shape.Devices, want)
			}
		}
		if slots, ok := e.Place(inv, 0, spec.NewShape(3, 2)); ok {
			t.Errorf("%s places 3+2 on %v", name, slots)
		}
		if slots, ok := e.Place(inv, 0, spec.NewShape(2, 2)); !ok || len(slots) != 2 {
			t.Errorf("%s places 2+2 on %v", name, slots)
		}
	}
}
