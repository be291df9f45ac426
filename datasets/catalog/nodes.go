package catalog

import (
	"slices"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// NodeEntry is one node type of the catalog.
type NodeEntry struct {
	Node      spec.Node
	Aliases   []string
	IntraLink string   // link between the devices of a node
	NICs      int      // for compute traffic
	NICBps    float64  // per NIC, one direction, bytes/s
	Default   []string // accelerators with this default machine
	Note      string
	Source    string
}

// genericNode is the machine of an accelerator without a node type.
const genericNode = "PCIe server"

type nodeTable struct {
	*index
	entries   []NodeEntry
	defaultOf map[string]int // accelerator name -> position
}

var loadNodes = sync.OnceValue(func() *nodeTable {
	t := &nodeTable{index: newIndex("node type", strings.TrimSpace), defaultOf: map[string]int{}}
	for _, r := range readTable("nodes.csv") {
		e := nodeFromRow(r)
		for _, acc := range e.Default {
			t.defaultOf[acc] = len(t.entries)
		}
		t.entries = append(t.entries, e)
		t.add(e.Node.Name, e.Aliases, 0)
	}
	return t
})

func nodeFromRow(r row) NodeEntry {
	e := NodeEntry{
		Node: spec.Node{
			Name:        r.str("name"),
			Accelerator: r.str("accelerator"),
			Devices:     r.int("devices"),
			CPUs:        r.int("cpu_threads"),
			HostBytes:   r.num("host_gib") * gib,
			Link: spec.Link{
				IntraBps: r.num("intra_gbps_per_device") * giga,
				HostBps:  r.num("host_gbps_per_device") * giga,
			},
		},
		Aliases:   r.list("aliases"),
		IntraLink: r.str("intra_link"),
		NICs:      r.int("nics"),
		NICBps:    r.num("gbps_per_nic") * giga / 8,
		Default:   r.list("default_for"),
		Note:      r.str("notes"),
		Source:    r.str("source"),
	}
	e.Node.Link.InterBps = float64(e.NICs) * e.NICBps
	if e.Node.Accelerator == "" {
		return e
	}
	acc, err := Accelerator(e.Node.Accelerator)
	if err != nil {
		panic(err)
	}
	e.Node.Accelerator = acc.Name
	e.Node.Link = withDefaults(e.Node.Link, acc)
	return e
}

// withDefaults sets what a node type leaves to its devices: their PCIe is the link to the host, and
// to each other without a better one.
func withDefaults(l spec.Link, acc spec.Accelerator) spec.Link {
	if l.HostBps == 0 {
		l.HostBps = acc.HostBps
	}
	if l.IntraBps == 0 {
		l.IntraBps = acc.HostBps
	}
	return l
}

// Node returns the node type with a name or alias, or an *UnknownError.
func Node(name string) (spec.Node, error) {
	t := loadNodes()
	i, err := t.find(name)
	if err != nil {
		return spec.Node{}, err
	}
	return t.entries[i].Node, nil
}

// NodeFor returns the default node type of an accelerator, found by name or alias: the machine
// assumed if only the accelerator is given. For an accelerator without a node type it is a generic
// PCIe server. It returns false for an unknown accelerator.
func NodeFor(accelerator string) (spec.Node, bool) {
	acc, err := Accelerator(accelerator)
	if err != nil {
		return spec.Node{}, false
	}
	t := loadNodes()
	if i, ok := t.defaultOf[acc.Name]; ok {
		return t.entries[i].Node, true
	}
	n, err := Node(genericNode)
	if err != nil {
		panic(err)
	}
	n.Accelerator = acc.Name
	n.Link = withDefaults(n.Link, acc)
	return n, true
}

// Nodes returns every node type, in table order.
func Nodes() []NodeEntry {
	out := slices.Clone(loadNodes().entries)
	for i := range out {
		out[i].Aliases = slices.Clone(out[i].Aliases)
		out[i].Default = slices.Clone(out[i].Default)
	}
	return out
}
