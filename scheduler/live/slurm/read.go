package slurm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// node is a node as Slurm shows it.
type node struct {
	Name       string   `json:"name"`
	Gres       string   `json:"gres"`
	GresUsed   string   `json:"gres_used"`
	State      words    `json:"state"`
	Flags      words    `json:"state_flags"` // of 22.05; later in State
	Partitions []string `json:"partitions"`
	CPUs       number   `json:"cpus"`
	Memory     number   `json:"real_memory"` // MiB

	JobCPUs     number `json:"effective_cpus"`     // for jobs; 0 = all
	OtherMemory number `json:"specialized_memory"` // MiB that jobs do not get
}

// job is a job as Slurm shows it.
type job struct {
	ID        int64  `json:"job_id"`
	State     words  `json:"job_state"`
	Comment   string `json:"comment"`
	Admin     string `json:"admin_comment"`
	Partition string `json:"partition"` // one, or several with commas until it starts
	Account   string `json:"account"`
	User      string `json:"user_name"`
	Priority  number `json:"priority"`
	Submit    number `json:"submit_time"`
	Start     number `json:"start_time"`
	Eligible  number `json:"eligible_time"`
	Depends   string `json:"dependency"` // on other jobs, as far as they have not ended
	Reason    string `json:"state_reason"`
	Restarts  number `json:"restart_cnt"`
	Requeue   bool   `json:"requeue"`
	ArrayText string `json:"array_task_string"` // of tasks that wait together
	ArrayID   number `json:"array_job_id"`
	HetID     number `json:"het_job_id"`

	Nodes        string   `json:"nodes"`
	NodeCount    number   `json:"node_count"`
	CPUs         number   `json:"cpus"`
	MemoryNode   number   `json:"memory_per_node"`
	MemoryCPU    number   `json:"memory_per_cpu"`
	TresPerNode  string   `json:"tres_per_node"`
	TresPerJob   string   `json:"tres_per_job"`
	Gres         []string `json:"gres_detail"`
	JobResources *struct {
		Nodes     json.RawMessage `json:"nodes"`           // a list such as n[1-2], or an object with Allocation
		Allocated []allocation    `json:"allocated_nodes"` // until v0.0.40
	} `json:"job_resources"`

	comment comment
	request requested
}

// allocation is the part of a job on a node.
type allocation struct {
	NodeName string `json:"nodename"` // until v0.0.40
	Name     string `json:"name"`
}

// list is a list in the output of a command. One that failed may print an output without it, which does not mean that
// there is nothing.
func list[T any](out []byte, name string) ([]T, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("slurm: %s: %w", name, err)
	}
	var items []T
	if err := json.Unmarshal(all[name], &items); err != nil || items == nil {
		return nil, fmt.Errorf("slurm: %s: want a list: %w", name, cmp.Or(err, errors.New("there is none")))
	}
	if failed := all["errors"]; len(items) == 0 && len(failed) > 0 && string(failed) != "null" && strings.Trim(string(failed), "[] \t\r\n") != "" {
		return nil, fmt.Errorf("slurm: %s: %.300s", name, failed)
	}
	return items, nil
}

// Observe implements live.Cluster.
func (c *Cluster) Observe(ctx context.Context) (*live.State, error) {
	began := time.Now()
	shown, err := c.run(ctx, c.nodes...)
	if err != nil {
		return nil, err
	}
	queue, err := c.run(ctx, "squeue", "--json", "--all")
	if err != nil {
		return nil, err
	}
	s, err := c.state(shown, queue, time.Now())
	if err == nil {
		c.fast.Store(time.Since(began) < c.Poll/fastPolls/2 && slices.ContainsFunc(s.Jobs, func(j live.Job) bool { return j.Phase == live.Stopping }))
	}
	return s, err
}

// state reads the outputs of Slurm at a time.
func (c *Cluster) state(shown, queue []byte, now time.Time) (*live.State, error) {
	nodes, err := list[node](shown, "nodes")
	if err != nil {
		return nil, err
	}
	jobs, err := list[json.RawMessage](queue, "jobs")
	if err != nil {
		return nil, err
	}
	s := &live.State{Even: true}
	index, held := map[string]int{}, map[string]int{}
	for i := range nodes {
		c.addNode(s, index, &nodes[i])
	}
	seen := map[int]bool{}
	for _, raw := range jobs {
		j := &job{}
		if err := json.Unmarshal(raw, j); err != nil {
			s.Faults = append(s.Faults, live.Fault{Object: "job " + strconv.FormatInt(j.ID, 10), Err: fmt.Errorf("slurm: %w", err)})
			continue
		}
		seen[int(j.ID)] = true
		for name, n := range c.addJob(s, index, j, now) {
			held[name] += n
		}
	}
	for i := range nodes {
		c.addUnowned(s, index, &nodes[i], held, now)
	}
	limitUsage(s, index)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ended {
		if !seen[id] {
			delete(c.ended, id)
		}
	}
	return s, nil
}

// addNode adds a node with GPUs in one of the partitions.
func (c *Cluster) addNode(s *live.State, index map[string]int, n *node) {
	if len(c.Partitions) > 0 && !slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(c.Partitions, p) }) {
		return
	}
	if _, twice := index[n.Name]; twice { // once for each partition in some versions
		return
	}
	typ, devices, err := gres(n.Gres)
	if err == nil && devices == 0 {
		return
	}
	var group spec.NodeGroup
	if err == nil {
		err = oneType(typ)
	}
	if err == nil {
		group, err = c.NodeType(typ, devices)
	}
	if err != nil {
		s.Faults = append(s.Faults, live.Fault{Object: "node " + n.Name, Err: err})
		return
	}
	group.Devices, group.CPUs, group.HostBytes = devices, int(cmp.Or(n.JobCPUs, n.CPUs)), float64(n.Memory-n.OtherMemory)*(1<<20)
	index[n.Name] = len(s.Nodes)
	s.Nodes = append(s.Nodes, live.Node{Name: n.Name, Type: group, Mode: n.mode(), UsedDevices: min(shared(n.GresUsed), devices)})
}

// mode says whether a node takes jobs. A node that is to fail, reboot or lose its power keeps its jobs until they end.
func (n *node) mode() live.Mode {
	all := slices.Concat(n.State, n.Flags)
	switch {
	case all.has("DOWN", "FUTURE", "DYNAMIC_FUTURE", "POWERED_DOWN", "ERROR"):
		return live.Down
	case all.has("UNKNOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "NOT_RESPONDING", "NO_RESPOND", "MAINT", "MAINTENANCE", "RESERVED", "BLOCKED",
		"INVAL", "INVALID_REG", "POWER_DOWN", "POWER_DRAIN", "POWERING_DOWN", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"):
		return live.Draining
	}
	return live.Up
}

// unownedAfter is how long devices must be used by no job before they count as used. Nodes and jobs are not of one moment.
const unownedAfter = 10 * time.Second

// addUnowned adds the devices that Slurm counts as used, and that no job has, to those used by others: Slurm starts nothing
// on them. Slurm 22.05 does so to jobs that end just after slurmctld was restarted.
func (c *Cluster) addUnowned(s *live.State, index map[string]int, n *node, held map[string]int, now time.Time) {
	i, known := index[n.Name]
	_, used, err := gres(n.GresUsed)
	unowned := used - held[n.Name]
	c.mu.Lock()
	defer c.mu.Unlock()
	if !known || err != nil || unowned <= 0 {
		delete(c.unowned, n.Name)
		return
	}
	since, before := c.unowned[n.Name]
	if !before {
		if c.unowned == nil {
			c.unowned = map[string]time.Time{}
		}
		since, c.unowned[n.Name] = now, now
	}
	if now.Sub(since) < unownedAfter {
		return
	}
	o := &s.Nodes[i]
	o.UsedDevices = min(o.UsedDevices+unowned, o.Type.Devices)
	s.Faults = append(s.Faults, live.Fault{Object: "node " + n.Name, Err: fmt.Errorf("slurm: %s counted as used (%s), which no job has: they are left alone, a restart of slurmctld gives them back", spec.Count(unowned, "GPU"), n.GresUsed)})
}

// addJob adds a job of pacer, or what another job uses. It returns the devices that the job holds.
func (c *Cluster) addJob(s *live.State, index map[string]int, j *job, now time.Time) live.Slots {
	held, err := j.slots()
	if err == nil {
		var out live.Job
		var ours bool
		if out, ours, err = c.jobOf(s, j, now); ours && err == nil {
			if partOf(held, out.Record.RunSlots) {
				held = out.Record.RunSlots
			}
			out.Slots = held
			if out.Phase != live.Ended {
				s.Jobs = append(s.Jobs, out)
			} else if j.State.has("CANCELLED") {
				s.Cancelled = append(s.Cancelled, out.Spec.ID)
			}
			return held
		}
	}
	if err != nil {
		s.Faults = append(s.Faults, live.Fault{Object: "job " + strconv.FormatInt(j.ID, 10), Err: fmt.Errorf("slurm: %w", err)})
	}
	for name, n := range held {
		if i, ok := index[name]; ok {
			s.Nodes[i].UsedDevices += n
		}
	}
	j.addHost(s, index)
	return held
}

// addHost adds the CPUs and the memory of a job to those used by others, as if it had equally much on each of its nodes.
func (j *job) addHost(s *live.State, index map[string]int) {
	if j.JobResources == nil || !j.State.has("RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT") {
		return
	}
	names, err := j.nodeNames()
	if err != nil || len(names) == 0 {
		return
	}
	cpus := float64(j.CPUs) / float64(len(names))
	mib := cmp.Or(float64(j.MemoryNode), float64(j.MemoryCPU)*cpus)
	for _, name := range names {
		if i, ok := index[name]; ok {
			s.Nodes[i].UsedHost = s.Nodes[i].UsedHost.Plus(spec.Host{MilliCPUs: int64(cpus * 1000), Bytes: int64(mib * (1 << 20))})
		}
	}
}

// limitUsage leaves jobs of pacer what they have of the CPUs and memory of nodes: Slurm may give these to several jobs.
func limitUsage(s *live.State, index map[string]int) {
	own := map[string]spec.Host{}
	for _, j := range s.Jobs {
		for name, n := range j.Slots {
			own[name] = own[name].Plus(j.Spec.Host.Times(n))
		}
	}
	for name, o := range own {
		if i, ok := index[name]; ok {
			all, used := s.Nodes[i].Type.Host(), &s.Nodes[i].UsedHost
			used.MilliCPUs, used.Bytes = min(used.MilliCPUs, max(all.MilliCPUs-o.MilliCPUs, 0)), min(used.Bytes, max(all.Bytes-o.Bytes, 0))
		}
	}
}

// partOf reports whether a job has fewer devices than it was started on, on the same nodes. Slurm takes no devices away from a
// run: it does not know all of them just after a start, or a restart of slurmctld.
func partOf(held, started live.Slots) bool {
	for name := range held {
		if started[name] == 0 {
			return false
		}
	}
	return held != nil && held.Devices() < started.Devices()
}

// slots returns the devices that a job holds, nil if it holds none.
func (j *job) slots() (live.Slots, error) {
	if j.JobResources == nil || !j.State.has("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT") {
		return nil, nil
	}
	names, err := j.nodeNames()
	if err != nil || len(j.Gres) == 0 {
		return nil, err
	}
	if len(names) != len(j.Gres) {
		return nil, fmt.Errorf("GRES of %d nodes on %d nodes", len(j.Gres), len(names))
	}
	out := live.Slots{}
	for i, name := range names {
		_, n, err := gres(j.Gres[i])
		if err != nil {
			return nil, err
		}
		if n > 0 {
			out[name] = n
		}
	}
	return out, nil
}

// nodeNames returns the nodes of a job, in the order of its GRES.
func (j *job) nodeNames() (out []string, err error) {
	all := j.JobResources.Allocated
	var text string
	if raw := j.JobResources.Nodes; len(raw) > 0 && raw[0] == '{' {
		var nodes struct {
			List       string
			Allocation []allocation
		}
		if err := json.Unmarshal(raw, &nodes); err != nil {
			return nil, fmt.Errorf("job_resources: %w", err)
		}
		all, text = nodes.Allocation, nodes.List
	} else if len(raw) > 0 {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("job_resources: %w", err)
		}
	}
	for _, a := range all {
		out = append(out, cmp.Or(a.NodeName, a.Name))
	}
	if len(out) > 0 {
		return out, nil
	}
	return hosts(cmp.Or(text, j.Nodes))
}

// phase says what Slurm does with a job. For Settle after the end of its last run, a
// job is still stopping.
func (c *Cluster) phase(j *job, now time.Time) live.Phase {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch id := int(j.ID); {
	case j.State.has("COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"):
		return live.Stopping
	case j.State.has("RUNNING", "CONFIGURING", "SUSPENDED"):
		delete(c.ended, id)
		return live.Running
	case !j.State.has("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"):
		return live.Ended
	case j.Priority > 0:
		if int(j.Restarts) > j.comment.RestartCount {
			return live.Requeued
		}
		return live.Released
	case j.Restarts > 0:
		if last, ok := c.ended[id]; !ok || last.restarts != int(j.Restarts) {
			c.ended[id] = lastRun{int(j.Restarts), now}
		}
		if now.Truncate(time.Second).Sub(c.ended[id].seen.Truncate(time.Second)) < c.Settle {
			return live.Stopping
		}
	}
	return live.Held
}
