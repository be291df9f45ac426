package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// Team is this node among those that measure a point together: each starts its own processes, and node 0 has the result.
// They share a directory. A nil Team is a node by itself.
type Team struct {
	node executor.Node
	dir  string // of this attempt
	at   meeting
	own  string // interface of this node towards node 0
}

// meeting is where the processes of all nodes meet.
type meeting struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

// Times that node 0 waits: for the others to begin they wait for it, and for their reports once its own processes have ended.
const (
	meetingWait = 5 * time.Minute
	reportWait  = 30 * time.Second
)

// JoinTeam returns the Team of node n, nil if it is the only one. dir is a directory that all nodes see. It returns once node
// 0 has joined.
func JoinTeam(ctx context.Context, n executor.Node, dir string) (*Team, error) {
	if n.Nodes < 2 {
		return nil, nil
	}
	t := &Team{node: n, dir: filepath.Join(dir, "attempt-"+n.Attempt)}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return nil, fmt.Errorf("runner: nodes: %w", err)
	}
	file := filepath.Join(t.dir, "meeting.json")
	if t.First() {
		address, err := ownAddress()
		if err == nil {
			t.at.Address = address
			t.at.Port, err = freePort("")
		}
		if err == nil {
			err = writeJSON(file, t.at)
		}
		if err != nil {
			return nil, fmt.Errorf("runner: nodes: %w", err)
		}
	} else if err := waitFor(ctx, file, meetingWait, &t.at); err != nil {
		return nil, fmt.Errorf("runner: nodes: node %d of %d waited for node 0: %w", n.Number, n.Nodes, err)
	}
	var err error
	if t.own, err = interfaceTo(t.at.Address); err != nil {
		return nil, fmt.Errorf("runner: nodes: %w", err)
	}
	return t, nil
}

// First reports whether this node has the result.
func (t *Team) First() bool { return t == nil || t.node.Number == 0 }

// Nodes returns the number of nodes.
func (t *Team) Nodes() int {
	if t == nil {
		return 1
	}
	return t.node.Nodes
}

// number returns the number of this node.
func (t *Team) number() int {
	if t == nil {
		return 0
	}
	return t.node.Number
}

// path returns the path of a file that all processes of a point see; own is the directory of a node by itself.
func (t *Team) path(own, name string) string {
	if t == nil {
		return filepath.Join(own, name)
	}
	return filepath.Join(t.dir, name)
}

// place returns where the processes meet: port is that of a node by itself.
func (t *Team) place(port int) meeting {
	if t == nil {
		return meeting{"127.0.0.1", port}
	}
	return t.at
}

// gloo returns the interface that the processes use on CPUs.
func (t *Team) gloo() string {
	if t == nil {
		return loopback() // on a single machine gloo need not look up the host name
	}
	return t.own
}

// ports returns how many ports a launch may try: only a node by itself can choose another.
func (t *Team) ports() int {
	if t == nil {
		return portAttempts
	}
	return 1
}

// nodeReport is what a node knows of its part of a point.
type nodeReport struct {
	Exit            profiler.Exit `json:"exit"`
	OutOfMemoryKill bool          `json:"out_of_memory_kill"`
	Watched         Watched       `json:"watched"`
}

// report tells node 0 what this node saw. On node 0 it adds what the others report, and returns the nodes that do not.
func (t *Team) report(ctx context.Context, own nodeReport) (all nodeReport, silent []int, err error) {
	if t == nil {
		return own, nil, nil
	}
	file := func(node int) string { return filepath.Join(t.dir, "node-"+strconv.Itoa(node)+".json") }
	if !t.First() {
		return own, nil, writeJSON(file(t.node.Number), own)
	}
	deadline := time.Now().Add(reportWait)
	for i := 1; i < t.node.Nodes; i++ {
		var r nodeReport
		switch err := waitFor(ctx, file(i), time.Until(deadline), &r); {
		case errors.Is(err, fs.ErrNotExist):
			silent = append(silent, i)
		case err != nil:
			return own, silent, err
		default:
			own.add(i, r)
		}
	}
	return own, silent, nil
}

// add adds the report of another node.
func (r *nodeReport) add(node int, o nodeReport) {
	if kill := endedFromOutside(o.Exit); kill && !endedFromOutside(r.Exit) {
		r.Exit.Code, r.Exit.Signal = o.Exit.Code, o.Exit.Signal
	}
	if o.Exit.Tail != "" && (o.Exit.Code != 0 || o.Exit.Signal != "") {
		r.Exit.Tail += fmt.Sprintf("\nnode %d:\n%s", node, o.Exit.Tail)
	}
	r.Exit.Stray += o.Exit.Stray
	r.OutOfMemoryKill = r.OutOfMemoryKill || o.OutOfMemoryKill
	r.Watched.add(node, o.Watched)
}

// add adds what another node watched. The energy is known if that of all nodes is.
func (w *Watched) add(node int, o Watched) {
	if w.EnergyJoules == 0 || o.EnergyJoules == 0 {
		w.EnergyJoules = 0
	} else {
		w.EnergyJoules += o.EnergyJoules
	}
	if w.AvgWatts == 0 || o.AvgWatts == 0 {
		w.AvgWatts = 0
	} else {
		w.AvgWatts += o.AvgWatts
	}
	if w.Doubt == "" && o.Doubt != "" {
		w.Doubt = fmt.Sprintf("node %d: %s", node, o.Doubt)
	}
	for _, key := range []string{profiler.EnvThrottle, profiler.EnvShared, profiler.EnvWarning} {
		text := o.Env[key]
		if text == "" {
			continue
		}
		text = fmt.Sprintf("node %d: %s", node, text)
		if w.Env == nil {
			w.Env = map[string]string{}
		}
		if have := w.Env[key]; have != "" {
			text = have + "; " + text
		}
		w.Env[key] = text
	}
}

func writeJSON(file string, v any) error {
	return atomicfile.Write(file, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}

// waitFor reads a JSON file once it is there. The error after limit wraps fs.ErrNotExist.
func waitFor(ctx context.Context, file string, limit time.Duration, into any) error {
	for deadline := time.Now().Add(limit); ; {
		text, err := os.ReadFile(file)
		if err == nil {
			return json.Unmarshal(text, into)
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		_, _ = os.ReadDir(filepath.Dir(file)) // a network file system then looks for new files
	}
}

// ownAddress returns the address by which other nodes reach this one: that of its host name, or else of an interface. It is
// the loopback address only where there is no other.
func ownAddress() (string, error) {
	var candidates []net.IP
	if host, err := os.Hostname(); err == nil {
		found, _ := net.LookupIP(host)
		candidates = append(candidates, found...)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			candidates = append(candidates, n.IP)
		}
	}
	for _, usable := range []func(net.IP) bool{
		func(ip net.IP) bool { return ip.To4() != nil && ip.IsGlobalUnicast() },
		net.IP.IsGlobalUnicast,
		net.IP.IsLoopback,
	} {
		for _, ip := range candidates {
			if usable(ip) {
				return ip.String(), nil
			}
		}
	}
	return "", errors.New("this node has no network address")
}

// interfaceTo returns the name of the interface that this node reaches an address by.
func interfaceTo(address string) (string, error) {
	c, err := net.Dial("udp", net.JoinHostPort(address, "9")) // sends nothing
	if err != nil {
		return "", err
	}
	defer c.Close()
	from := c.LocalAddr().(*net.UDPAddr).IP
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(from) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no interface has the address %s, from which this node reaches %s", from, address)
}

// warnSilent warns of nodes that did not report.
func warnSilent(m *spec.Measurement, nodes []int) {
	if len(nodes) > 0 {
		warn(m, fmt.Sprintf("nodes %v did not say how their processes ended, nor what else used their devices", nodes))
	}
}
