package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Unnamed is the accelerator of cluster groups without one, such as "20x4". It has no figures: only
// truth sources that need none, such as the durations of the workload, can run on it.
const Unnamed = "device"

// Cluster parses a cluster as spec.ParseCluster does, such as "6x4xT4,3x8xRTX2080Ti". Links, CPUs
// and host memory are those of the accelerator's default node type (NodeFor): links per device
// unchanged, CPUs and memory in proportion to the devices per node.
func Cluster(s string) (spec.Cluster, error) {
	if strings.TrimSpace(s) == "" {
		return spec.Cluster{}, errors.New("catalog: the cluster is empty, want a form like 8x8xA800")
	}
	return spec.ParseCluster(s, group)
}

// group resolves an accelerator's name to a group of nodes with that many
// devices.
func group(name string, devices int) (spec.NodeGroup, error) {
	if name == "" || named.Fold(name) == Unnamed {
		return spec.NodeGroup{Accelerator: spec.Accelerator{Name: Unnamed}}, nil
	}
	acc, err := AcceleratorOf(name)
	if err != nil {
		return spec.NodeGroup{}, err
	}
	n, _ := NodeFor(acc.Name)
	return groupOf(n, acc, devices), nil
}

// groupOf scales a node type to another number of devices. The NICs stay: part of a machine still
// has its network.
func groupOf(n spec.Node, acc spec.Accelerator, devices int) spec.NodeGroup {
	share := float64(devices) / float64(n.Devices)
	return spec.NodeGroup{
		Accelerator: acc,
		CPUs:        int(float64(n.CPUs) * share),
		HostBytes:   n.HostBytes * share,
		Link:        n.Link,
	}
}

// yamlGroup is one group of a cluster file; a zero figure means that of the node type.
type yamlGroup struct {
	Nodes       int     `yaml:"nodes"`
	Node        string  `yaml:"node"`        // node type; its devices and accelerator are the defaults
	Devices     int     `yaml:"devices"`     // per node
	Accelerator string  `yaml:"accelerator"` // name or alias
	IntraGBps   float64 `yaml:"intra_gbytes_per_s"`
	InterGbps   float64 `yaml:"inter_gbits_per_s"`
	HostGBps    float64 `yaml:"host_gbytes_per_s"`
	CPUs        int     `yaml:"cpus"`
	HostGiB     float64 `yaml:"host_gib"`
	RackNodes   int     `yaml:"rack_nodes"`
	RackGbps    float64 `yaml:"rack_gbits_per_s"`
}

// ClusterYAML reads a cluster file; name is its name in errors:
//
//	groups:
//	  - nodes: 8
//	    node: Rubick A800 testbed      # a node type of the catalog, or
//	  - nodes: 4
//	    devices: 4                     # devices of an accelerator, with
//	    accelerator: T4
//	    inter_gbits_per_s: 25          # figures that replace those of the node type:
//	    # intra_gbytes_per_s, host_gbytes_per_s (per device, one direction),
//	    # inter_gbits_per_s (all NICs of a node), cpus, host_gib (per node)
//	    rack_nodes: 2                  # this many nodes, in order, share a switch, and
//	    rack_gbits_per_s: 10           # a node reaches other racks at this rate (all NICs, one direction)
//
// Errors of syntax name line and column, errors about a group its first line.
func ClusterYAML(r io.Reader, name string) (spec.Cluster, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return spec.Cluster{}, fmt.Errorf("catalog: %s: %w", name, err)
	}
	groups, err := decodeGroups(text)
	if err != nil {
		return spec.Cluster{}, fmt.Errorf("catalog: %s: %w", name, err)
	}
	if len(groups) == 0 {
		return spec.Cluster{}, fmt.Errorf("catalog: %s: no groups, want groups: [{nodes: 8, node: DGX H100}]", name)
	}
	var c spec.Cluster
	for i, y := range groups {
		g, err := y.resolve()
		if err != nil {
			return spec.Cluster{}, fmt.Errorf("catalog: %s:%d: group %d: %w", name, lineOfGroup(text, i), i+1, err)
		}
		c.Groups = append(c.Groups, g)
	}
	return c, c.Validate()
}

// decodeGroups decodes the YAML. It turns a panic of the parser on a malformed document into an
// error.
func decodeGroups(text []byte) (groups []yamlGroup, err error) {
	defer func() {
		if p := recover(); p != nil {
			groups, err = nil, fmt.Errorf("malformed YAML: %v", p)
		}
	}()
	var file struct {
		Groups []yamlGroup `yaml:"groups"`
	}
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&file)
	if errors.Is(err, io.EOF) {
		err = nil // an empty file
	}
	return file.Groups, err
}

// lineOfGroup returns the first line of a group of a decoded document.
func lineOfGroup(text []byte, group int) int {
	path, err := yaml.PathString(fmt.Sprintf("$.groups[%d]", group))
	if err != nil {
		return 0
	}
	node, err := path.ReadNode(bytes.NewReader(text))
	if err != nil {
		return 0
	}
	return node.GetToken().Position.Line
}

func (y yamlGroup) resolve() (spec.NodeGroup, error) {
	if err := y.check(); err != nil {
		return spec.NodeGroup{}, err
	}
	n, acc, err := y.machine()
	if err != nil {
		return spec.NodeGroup{}, err
	}
	g := spec.NodeGroup{Accelerator: acc}
	if n.Devices > 0 {
		if y.Devices == 0 {
			y.Devices = n.Devices
		}
		g = groupOf(n, acc, y.Devices)
	}
	g.Count, g.Devices = y.Nodes, y.Devices
	set(&g.Link.IntraBps, y.IntraGBps*giga)
	set(&g.Link.InterBps, y.InterGbps*giga/8)
	set(&g.Link.HostBps, y.HostGBps*giga)
	set(&g.HostBytes, y.HostGiB*gib)
	g.Racks = spec.Racks{Nodes: y.RackNodes, Bps: y.RackGbps * giga / 8}
	if y.CPUs > 0 {
		g.CPUs = y.CPUs
	}
	return g, nil
}

func set(dst *float64, v float64) {
	if v > 0 {
		*dst = v
	}
}

// maxFigure bounds the numbers of a cluster file, as spec.ParseCluster does, so that their products
// fit in an int.
const maxFigure = 1 << 20

func (y yamlGroup) check() error {
	for _, f := range []struct {
		name string
		v    float64
	}{{"nodes", float64(y.Nodes)}, {"devices", float64(y.Devices)}, {"cpus", float64(y.CPUs)},
		{"intra_gbytes_per_s", y.IntraGBps}, {"inter_gbits_per_s", y.InterGbps},
		{"host_gbytes_per_s", y.HostGBps}, {"host_gib", y.HostGiB}, {"rack_nodes", float64(y.RackNodes)}, {"rack_gbits_per_s", y.RackGbps}} {
		if !(f.v >= 0 && f.v <= maxFigure) {
			return fmt.Errorf("%s: %g is not in 0..%d", f.name, f.v, maxFigure)
		}
	}
	if y.Nodes == 0 {
		return errors.New("nodes: 0, must be at least 1")
	}
	if (y.RackNodes > 0) != (y.RackGbps > 0) {
		return fmt.Errorf("rack_nodes %d and rack_gbits_per_s %g: racks need both, above 0", y.RackNodes, y.RackGbps)
	}
	if y.Node == "" && y.Devices == 0 {
		return errors.New("devices: must be at least 1 where no node type is named")
	}
	return nil
}

// machine finds the node type and the accelerator of a group; a zero node for
// an unnamed accelerator.
func (y yamlGroup) machine() (spec.Node, spec.Accelerator, error) {
	if y.Node == "" {
		g, err := group(y.Accelerator, max(y.Devices, 1))
		if err != nil || g.Accelerator.Name == Unnamed {
			return spec.Node{}, g.Accelerator, err
		}
		n, _ := NodeFor(g.Accelerator.Name)
		return n, g.Accelerator, nil
	}
	n, err := Node(y.Node)
	if err != nil {
		return n, spec.Accelerator{}, err
	}
	name := n.Accelerator
	if y.Accelerator != "" {
		name = y.Accelerator
	}
	if name == "" {
		return n, spec.Accelerator{Name: Unnamed}, nil
	}
	acc, err := Accelerator(name)
	if err != nil {
		return n, acc, err
	}
	if n.Accelerator != "" && n.Accelerator != acc.Name {
		return n, acc, fmt.Errorf("accelerator: node type %s comes with %s, not %s", n.Name, n.Accelerator, acc.Name)
	}
	n.Link = withDefaults(n.Link, acc)
	return n, acc, nil
}
