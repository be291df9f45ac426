package sim_test

import (
	"math"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

func TestReadCosts(t *testing.T) {
	const text = "model,restore_s,checkpoint_s,launch_s,reshard_s\nbert, 3,2,1.5,4\n*,0,0,20,0\n"
	got, err := sim.ReadCosts(strings.NewReader(text), "costs.csv")
	want := &sim.CostTable{
		Models: map[string]sim.ModelCosts{"bert": {Launch: 3 * s / 2, Checkpoint: 2 * s, Restore: 3 * s, Reshard: 4 * s}},
		Others: &sim.ModelCosts{Launch: 20 * s},
	}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	models := []string{"bert", "gpt2", "t5"}
	if missing := got.Missing(models); missing != nil {
		t.Errorf("missing %v, though there is a row for others", missing)
	}
	got.Others = nil
	if diff := gocmp.Diff([]string{"gpt2", "t5"}, got.Missing(models)); diff != "" {
		t.Errorf("missing models (-want +got):\n%s", diff)
	}
}

func TestReadOutages(t *testing.T) {
	got, err := sim.ReadOutages(strings.NewReader("up_s,node,down_s\n,0,100\n20,0,10.5\n30,0,20\n7,3,0\n"), "f.csv", 4, 0)
	want := sim.OutageTable{
		0: {{Down: 10500 * s / 1000, Up: 20 * s}, {Down: 20 * s, Up: 30 * s}, {Down: 100 * s, Up: math.MaxInt64}},
		3: {{Down: 0, Up: 7 * s}},
	}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestTablesNameWhatIsWrong(t *testing.T) {
	costs := func(text string) error {
		_, err := sim.ReadCosts(strings.NewReader(text), "f.csv")
		return err
	}
	outages := func(text string) error {
		_, err := sim.ReadOutages(strings.NewReader(text), "f.csv", 4, 0)
		return err
	}
	const costHeader, outageHeader = "model,launch_s,checkpoint_s,restore_s,reshard_s\n", "node,down_s,up_s\n"
	for _, c := range []struct {
		read func(string) error
		text string
		want []string
	}{
		{costs, "", []string{"f.csv: the file is empty, want a header model,launch_s"}},
		{costs, "model,launch_s\n", []string{"f.csv:1: header model,launch_s, want model,launch_s,checkpoint_s"}},
		{costs, costHeader + "m,1,2,3\n", []string{"wrong number of fields"}},
		{costs, costHeader + ",1,2,3,4\n", []string{"f.csv:2: no model"}},
		{costs, costHeader + "m,1,2,3,4\nm,1,2,3,4\n", []string{"f.csv:3: model m was on line 2 already"}},
		{costs, costHeader + "m,-1,2,NaN,x\nn,1,2,3,1e10\n", []string{`f.csv:2: launch_s "-1"`, `restore_s "NaN"`, `reshard_s "x"`, `f.csv:3: reshard_s "1e10" is not a number of seconds in 0..3153600000`}},
		{outages, "node,down_s,up_s,why\n", []string{"f.csv:1: header"}},
		{outages, outageHeader + "4,1,2\n-1,1,2\nx,1,2\n", []string{`f.csv:2: node "4" is not in 0..3`, `f.csv:3: node "-1"`, `f.csv:4: node "x"`}},
		{outages, outageHeader + "0,,2\n0,2,2\n", []string{`f.csv:2: down_s ""`, "f.csv:3: up_s 2 is not after down_s 2"}},
		{outages, outageHeader + "0,1,\n0,5,6\n", []string{"f.csv:3: node 0 is down on line 2 already"}},
	} {
		err := c.read(c.text)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v, want one that says %q", c.text, err, want)
			}
		}
	}
}

// Reading any file ends with a table or an error.
func FuzzReadOutages(f *testing.F) {
	f.Add("node,down_s,up_s\n0,1,2\n0,2,\n")
	f.Add("node,down_s,up_s\n0,1e300,\"2\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := sim.ReadOutages(strings.NewReader(text), "f.csv", 4, 0)
		if err != nil {
			return
		}
		for node, list := range table {
			for i, o := range list {
				if node < 0 || node > 3 || o.Down < 0 || o.Up <= o.Down || i > 0 && o.Down < list[i-1].Up {
					t.Fatalf("node %d: %v", node, list)
				}
			}
		}
	})
}
