package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Shape is the number of devices of a job on each node, without saying on which nodes. It is comparable;
// NewShape and ParseShape return it in canonical form.
type Shape struct {
	// Devices on each node, largest first, joined by '+': "8+8", "4+2+1".
	Devices   string  `json:"devices"`
	CPUs      int     `json:"cpus,omitempty"`       // CPU threads on all nodes together, 0 = not recorded
	HostBytes float64 `json:"host_bytes,omitempty"` // host memory on all nodes together, 0 = not recorded
}

// Host returns the CPUs and host memory of s, 0 where not recorded.
func (s Shape) Host() Host { return Host{MilliCPUs: 1000 * int64(s.CPUs), Bytes: int64(s.HostBytes)} }

// NewShape returns the canonical shape with perNode devices on each node. Zeros are dropped and the order does
// not matter.
func NewShape(perNode ...int) Shape {
	var runs []run
	for _, n := range perNode {
		if n > 0 {
			runs = append(runs, run{1, n})
		}
	}
	return shapeOf(runs)
}

// Packed returns the shape of n devices on as few nodes of perNode devices as possible: full nodes and at most
// one partial node.
func Packed(n, perNode int) Shape {
	if perNode < 1 {
		perNode = 1
	}
	n = max(n, 0)
	return shapeOf([]run{{n / perNode, perNode}, {1, n % perNode}})
}

// run is a number of nodes with as many devices each. One without nodes or devices stands for none.
type run struct{ nodes, devices int }

// shapeOf returns the shape of runs, which it sorts.
func shapeOf(runs []run) Shape {
	slices.SortFunc(runs, func(a, b run) int { return b.devices - a.devices })
	var b strings.Builder
	for _, r := range runs {
		if r.devices == 0 {
			continue
		}
		node := "+" + strconv.Itoa(r.devices)
		b.Grow(r.nodes * len(node))
		for range r.nodes {
			b.WriteString(node)
		}
	}
	return Shape{Devices: strings.TrimPrefix(b.String(), "+")}
}

// ParseShape reads "8+8", or "2x8" for the same shape, and returns the canonical form.
func ParseShape(s string) (Shape, error) {
	var runs []run
	nodes, devices := 0, 0
	for _, part := range strings.Split(s, "+") {
		times, size, ok := strings.Cut(strings.TrimSpace(part), "x")
		if !ok {
			times, size = "1", times
		}
		t, err1 := strconv.Atoi(times)
		n, err2 := strconv.Atoi(size)
		if err1 != nil || err2 != nil || t < 1 || n < 1 || t > maxDegree || n > maxDegree || nodes+t > maxDegree {
			return Shape{}, fmt.Errorf("spec: shape %q: %q is not a positive number of devices, want a form like 8+8 or 2x8", s, part)
		}
		runs, nodes, devices = append(runs, run{t, n}), nodes+t, devices+t*n
		if devices > maxDegree {
			return Shape{}, fmt.Errorf("spec: shape %q has more than %d devices", s, maxDegree)
		}
	}
	return shapeOf(runs), nil
}

// PerNode returns the devices on each node, most first.
func (s Shape) PerNode() []int {
	if s.Devices == "" {
		return nil
	}
	out := make([]int, 0, 8)
	s.each(func(n int) { out = append(out, n) })
	return out
}

// String writes s in short form, with equal nodes grouped: "2x8", "3x8+4". ParseShape reads it.
func (s Shape) String() string {
	var b []byte
	count, last := 0, 0
	flush := func() {
		if count == 0 {
			return
		}
		if len(b) > 0 {
			b = append(b, '+')
		}
		if count > 1 {
			b = append(strconv.AppendInt(b, int64(count), 10), 'x')
		}
		b = strconv.AppendInt(b, int64(last), 10)
	}
	s.each(func(n int) {
		if n != last {
			flush()
			count, last = 0, n
		}
		count++
	})
	flush()
	return string(b)
}

// each calls f with the number of devices of every node. It does not allocate.
func (s Shape) each(f func(int)) {
	n := 0
	for i := 0; i <= len(s.Devices); i++ {
		if i == len(s.Devices) || s.Devices[i] == '+' {
			if n > 0 {
				f(n)
			}
			n = 0
			continue
		}
		n = n*10 + int(s.Devices[i]-'0')
	}
}

// Total returns the number of devices.
func (s Shape) Total() int {
	t := 0
	s.each(func(n int) { t += n })
	return t
}

// Nodes returns the number of nodes.
func (s Shape) Nodes() int {
	t := 0
	s.each(func(int) { t++ })
	return t
}

// Most and Least return the largest and smallest number of devices on one
// node, 0 for an empty shape.
func (s Shape) Most() int {
	m := 0
	s.each(func(n int) { m = max(m, n) })
	return m
}

// Least is described at Most.
func (s Shape) Least() int {
	m := 0
	s.each(func(n int) {
		if m == 0 || n < m {
			m = n
		}
	})
	return m
}

// Stats returns Total, Nodes, Most and Least in one pass.
func (s Shape) Stats() (total, nodes, most, least int) {
	s.each(func(n int) {
		total, nodes, most = total+n, nodes+1, max(most, n)
		if least == 0 || n < least {
			least = n
		}
	})
	return total, nodes, most, least
}
