package goodput

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

var devices = []Device{{"ext", "A"}, {"", "T4"}, {"old", "A"}}

// files returns synthetic tables of an application: two epochs at 10, 40 and 80 samples
// per step, and steps on nodes of up to 4 devices with the times
//
//	step = 0.5 + local/20 + nodes + replicas/nodes/4     sync = nodes/2
func files(app string) fstest.MapFS {
	dir := "traces/" + app + "/"
	out := fstest.MapFS{}
	add := func(file string, lines ...string) {
		out[dir+file] = &fstest.MapFile{Data: []byte(strings.Join(lines, "\n") + "\n")}
	}
	head := "progress,iteration,metric,grad_sqr,grad_var"
	add("validation-10.csv", head, "100,100,1,1,3", "200,200,1,1,6")
	add("validation-40.csv", head, "110,50,1,1,3", "200,80,1,3,2")
	add("validation-80.csv", head, "105,30,1,2,1", "210,50,1,1,4")
	placed := []string{"placement,local_bsz,step_time,sync_time"}
	for _, p := range []string{"1", "2", "3", "4", "11", "12", "22", "13", "44", "111", "112", "121", "143", "444"} {
		nodes, replicas := len(p), 0
		for _, d := range p {
			replicas += int(d - '0')
		}
		for _, local := range []int{5, 10, 20} {
			placed = append(placed, fmt.Sprintf("%s,%d,%g,%g", p, local, step(nodes, replicas, local), float64(nodes)/2))
		}
	}
	add("placements.csv", placed...)
	spread := []string{"num_nodes,num_replicas,local_bsz,step_time,sync_time"}
	for _, nodes := range []int{6, 8} {
		for _, replicas := range []int{nodes, 4 * nodes} {
			for _, local := range []int{5, 20} {
				spread = append(spread, fmt.Sprintf("%d,%d,%d,%g,%g", nodes, replicas, local, step(nodes, replicas, local), float64(nodes)/2))
			}
		}
	}
	add("scalability.csv", spread...)
	return out
}

func step(nodes, replicas, local int) float64 {
	return 0.5 + float64(local)/20 + float64(nodes) + float64(replicas)/float64(nodes)/4
}

func tables(t *testing.T, apps ...string) *Tables {
	t.Helper()
	all := fstest.MapFS{}
	for _, a := range apps {
		maps.Copy(all, files(a))
	}
	read, err := Read(all, devices)
	if err != nil {
		t.Fatal(err)
	}
	return read
}
