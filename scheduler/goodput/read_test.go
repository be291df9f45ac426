package goodput

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestRead finds the folder in a clone, in its simulator and by itself. Tables without
// a device are left out, and the first of two devices with the same accelerator counts.
func TestRead(t *testing.T) {
	for _, where := range []string{"", "traces/", "simulator/traces/", "adaptdl/simulator/traces/"} {
		root := fstest.MapFS{}
		for name, f := range files("app") {
			root[where+strings.TrimPrefix(name, "traces/")] = f
		}
		root[where+"app/placements-old.csv"] = &fstest.MapFile{Data: []byte("placement,local_bsz,step_time,sync_time\n1,7,1,0\n")}
		root[where+"app/placements-ext.csv"] = &fstest.MapFile{Data: []byte("local_bsz,placement,sync_time,step_time\n9,1,0,2\n9,1,0,4\n")}
		root[where+"bare/validation-10.csv"] = root[where+"app/validation-10.csv"]
		root[where+"notes.txt"] = &fstest.MapFile{}
		read, err := Read(root, devices)
		if err != nil {
			t.Fatalf("%q: %v", where, err)
		}
		if got := read.Keys(); !slices.Equal(got, []spec.Key{{Model: "app", Accelerator: "A"}, {Model: "app", Accelerator: "T4"}}) {
			t.Errorf("%q: %v", where, got)
		}
		s := read.apps["app"].speeds["A"]
		if got, err := s.at(spec.NewShape(1), 9); err != nil || got.step != 3 {
			t.Errorf("%q: %+v, error %v, want the mean of the first table, 3 s", where, got, err)
		}
	}
}

// TestReadDelaunay checks that corners index the means of placements first, then the
// rows of scalability.
func TestReadDelaunay(t *testing.T) {
	root := files("app")
	root["delaunay/app.csv"] = &fstest.MapFile{Data: []byte("p0,p1,p2,p3\n0,1,3,12\n")}
	read, err := Read(root, devices)
	if err != nil {
		t.Fatal(err)
	}
	tri, ok := read.apps["app"].speeds["T4"].between.(*tetrahedra)
	if !ok || len(tri.cells) != 1 {
		t.Fatalf("%+v", tri)
	}
	if got := tri.points[3]; got.nodes != 1 || got.replicas != 2 || got.local != 5 {
		t.Errorf("point 3 is %+v, want 5 samples on 2 devices of a node", got)
	}
	if got := tri.points[len(tri.points)-1]; got.nodes != 8 || got.replicas != 32 || got.local != 20 {
		t.Errorf("the last point is %+v, want the last row", got)
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ file, from, to, want string }{
		{"placements.csv", "2,10,", "2,x,", `traces/app/placements.csv:6: local_bsz "x" is not a number of at least 1`},
		{"placements.csv", "\n2,10,", "\n205,10,", `placements.csv:6: placement "205" is not a digit 1..9 for each node`},
		{"placements.csv", "\n2,10,", "\n,10,", "placements.csv:6: placement is empty"},
		{"placements.csv", "2,10,2.5,0.5", "2,10,2.5,2.6", "placements.csv:6: step_time 2.5 is not above 0 and at least sync_time 2.6"},
		{"placements.csv", "2,10,2.5,0.5", "2,10,NaN,0.5", `step_time "NaN" is not a number`},
		{"placements.csv", "local_bsz", "bsz", "placements.csv: no column local_bsz"},
		{"scalability.csv", "\n6,6,5", "\n6,6.5,5", `scalability.csv:2: num_replicas "6.5" is not a whole number of at least 1`},
		{"validation-10.csv", "200,200", "100,200", "validation-10.csv:3: progress 100 is not above that of the previous epoch"},
		{"validation-10.csv", "200,200", "200,20", "validation-10.csv:3: iteration 20 is below that of the previous epoch"},
		{"validation-10.csv", "1,1,3", "1,0,0", "validation-10.csv:2: grad_sqr and grad_var are both 0"},
		{"validation-10.csv", "1,1,3", "1,-1,3", `validation-10.csv:2: grad_sqr "-1" is not a number of at least 0`},
		{"validation-10.csv", "100,100,1,1,3\n200,200,1,1,6\n", "", "validation-10.csv: no epochs"},
		{"validation-10.csv", "200,200,1,1,6", "200,200", "record on line 3: wrong number of fields"},
	} {
		root := files("app")
		f := root["traces/app/"+c.file]
		changed := strings.Replace(string(f.Data), c.from, c.to, 1)
		if changed == string(f.Data) {
			t.Fatalf("%s has no %q:\n%s", c.file, c.from, f.Data)
		}
		f.Data = []byte(changed)
		if _, err := Read(root, devices); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q in %s: error %v, want %s", c.to, c.from, c.file, err, c.want)
		}
	}
	root := files("app")
	root["delaunay/app.csv"] = &fstest.MapFile{Data: []byte("p0,p1,p2,p3\n0,1,3,99\n")}
	if _, err := Read(root, devices); err == nil || !strings.Contains(err.Error(), "delaunay/app.csv: tetrahedron 1: corner 99 is not in 0..") {
		t.Errorf("a corner out of range: error %v", err)
	}
	root = files("app")
	root["traces/app/validation-x.csv"] = root["traces/app/validation-10.csv"]
	if _, err := Read(root, devices); err == nil || !strings.Contains(err.Error(), `validation-x.csv: "x" is not a global batch`) {
		t.Errorf("a file without a batch: error %v", err)
	}
	if _, err := Read(fstest.MapFS{}, devices); err == nil || !strings.Contains(err.Error(), "traces/MODEL/validation-BATCH.csv") {
		t.Errorf("no files: error %v", err)
	}
}
