package kubernetes

import (
	"context"
	"fmt"
	"slices"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// parsedJob is what was read from a version of a job.
type parsedJob struct {
	version string
	job     live.Job
	err     error
	ended   bool // complete or failed
}

// held is what the pods of one job hold.
type held struct {
	run       string      // the slots of the present run, as its pods have them
	pods      []*core.Pod // of this run that are bound to a node
	others    []*core.Pod // of other runs that are bound: jobs and pods are followed apart, so pods may be older or newer than their job
	unbound   int
	succeeded bool // a pod of this run
}

// Observe implements live.Cluster. It reads what Run keeps, and sends no request.
//
// Jobs and pods are not of one moment. So what happens to a job is read from the job alone, in which its controller counts
// its pods. Pods say on which devices it is, and a pod of a managed job is never usage by others: if it is not of the
// present run, nothing starts on its devices, and no target loses them.
func (c *Cluster) Observe(context.Context) (*live.State, error) {
	jobs, err := c.jobs.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	s := &live.State{Even: true, Jobs: make([]live.Job, 0, len(jobs))}
	down, err := c.observeNodes(s)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	byOwner := make(map[types.UID]*held, len(jobs))
	for _, j := range jobs {
		byOwner[j.UID] = &held{run: j.Spec.Template.Annotations[SlotsAnnotation]}
	}
	broken := map[string]bool{}
	for _, n := range s.Nodes {
		broken[n.Name] = n.UsedDevices > 0
	}
	used, ending, bound := byNode{}, byNode{}, byNode{}
	for _, p := range pods {
		if broken[p.Spec.NodeName] && p.Status.Phase != core.PodSucceeded {
			bound.add(p)
		}
		var job *held
		owner := meta.GetControllerOf(p)
		if owner != nil {
			job = byOwner[owner.UID]
		}
		switch {
		case p.Status.Phase == core.PodSucceeded:
			if job != nil && p.Annotations[SlotsAnnotation] == job.run {
				job.succeeded = true
			}
		case down[p.Spec.NodeName]: // what was on a lost node holds nothing
		case p.Spec.NodeName == "":
			if job != nil {
				job.unbound++
			}
		case job == nil:
			used.add(p)
		case p.Annotations[SlotsAnnotation] == job.run:
			job.pods = append(job.pods, p)
		default:
			job.others = append(job.others, p)
		}
	}
	read := make(map[types.UID]*parsedJob, len(jobs))
	for _, j := range jobs {
		p, h := c.parse(j), byOwner[j.UID]
		p.ended = ended(j)
		read[j.UID] = p
		if j.DeletionTimestamp != nil && !p.ended && p.err == nil {
			s.Cancelled = append(s.Cancelled, p.job.Spec.ID)
		}
		ending.add(h.others...)
		switch phase := phaseOf(j, h); {
		case phase == live.Ended:
			ending.add(h.pods...)
		case p.err != nil:
			used.add(h.pods...)
			s.Faults = append(s.Faults, live.Fault{Object: "job " + j.Namespace + "/" + j.Name, Err: p.err})
		case phase == live.Held && partlyDone(j, h):
			s.Faults = append(s.Faults, live.Fault{Object: "job " + j.Namespace + "/" + j.Name, Err: errPartlyDone(j)})
		default:
			s.Jobs = append(s.Jobs, withState(p.job, j, phase, h))
		}
	}
	if err := c.observeAdvised(s, read); err != nil {
		return nil, err
	}
	c.mu.Lock()
	for uid, p := range c.parsed {
		if read[uid] == nil && p.err == nil && !p.ended && !c.completed[uid] {
			s.Cancelled = append(s.Cancelled, p.job.Spec.ID)
		}
	}
	c.parsed = read
	clear(c.completed)
	c.mu.Unlock()
	slices.Sort(s.Cancelled)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		unhealthy := min(n.UsedDevices, max(n.Type.Devices-bound[n.Name].devices, 0)) // what a pod holds is left to it
		n.UsedDevices, n.UsedHost, n.EndingDevices = used[n.Name].devices+unhealthy, used[n.Name].host, ending[n.Name].devices
	}
	return s, nil
}

// parse reads a job, or returns what was read of the same version.
func (c *Cluster) parse(j *batch.Job) *parsedJob {
	p := c.cached(j)
	if p != nil {
		return p
	}
	p = &parsedJob{version: j.ResourceVersion}
	if p.job, p.err = c.jobOf(j); p.err == nil {
		p.job.Record, p.err = live.ParseRecord(j.Annotations[RecordAnnotation])
	}
	return p
}

// cached returns what was read of this version of an object, nil if it is new.
func (c *Cluster) cached(of meta.Object) *parsedJob {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.parsed[of.GetUID()]; p != nil && p.version == of.GetResourceVersion() {
		return p
	}
	return nil
}

// partlyDone reports whether some pods of a job on several nodes have succeeded, and others have not: the job cannot be
// started again, since a Job does not run an index that has succeeded, and the others would wait for it.
func partlyDone(j *batch.Job, h *held) bool {
	all := j.Spec.Completions
	return all != nil && *all > 1 && (j.Status.Succeeded > 0 && j.Status.Succeeded < *all || h.succeeded)
}

func errPartlyDone(j *batch.Job) error {
	return fmt.Errorf("stopped after its pods %s had succeeded, which a Job does not run again, so that the others would wait for them: submit it anew, to go on from its checkpoint, with successPolicy: {rules: [{succeededCount: 1}]}, by which such a job is complete", j.Status.CompletedIndexes)
}

// withState completes a job by its phase and devices.
func withState(out live.Job, j *batch.Job, phase live.Phase, h *held) live.Job {
	out.Phase, out.UID, out.Version, out.Ref = phase, string(j.UID), j.ResourceVersion, j
	if t := j.Status.StartTime; t != nil && phase == live.Running {
		out.Started = t.Time
		for _, p := range h.pods { // it trains once all its pods have a node
			if t := p.Status.StartTime; t != nil && t.After(out.Started) {
				out.Started = t.Time
			}
		}
	}
	if phase == live.Running && partlyDone(j, h) {
		out.PartlyDone = true
		if out.Paused {
			out.ReleaseAfter = 0
		}
		out.Paused = true // it is left to end, with all its devices
	}
	if phase == live.Running && len(h.pods) >= int(*j.Spec.Parallelism) || phase == live.Stopping && len(h.pods) > 0 && len(h.pods)+h.unbound >= counted(j) {
		out.Slots = h.slots()
	}
	return out
}

// counted returns the number of pods that the controller of Jobs counts, those that are deleted included.
func counted(j *batch.Job) int {
	n := j.Status.Active
	if t := j.Status.Terminating; t != nil { // nil = the server is older
		n += *t
	}
	return int(n)
}

// phaseOf returns the phase of a job with some pods.
func phaseOf(j *batch.Job, h *held) live.Phase {
	suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
	switch {
	case j.DeletionTimestamp != nil || ended(j):
		return live.Ended
	case !suspended && (j.Status.StartTime == nil || has(j, batch.JobSuspended)):
		// If it is suspended before the controller of Jobs has seen it released, its status still
		// says suspended, while the controller may make pods of what it sees next: the release.
		return live.Releasing
	case !suspended && len(h.pods) > 0:
		return live.Running
	case !suspended && h.succeeded && h.unbound == 0:
		// It completes, unless a suspension that is not seen yet was first: the pods that are
		// deleted for it do not count.
		return live.Stopping
	case !suspended:
		return live.Released
	case counted(j) > 0 || j.Status.StartTime != nil && !has(j, batch.JobSuspended):
		// Until the controller of Jobs has seen the suspension, its template may not be changed.
		return live.Stopping
	case len(h.pods)+len(h.others)+h.unbound > 0: // older servers do not count pods that are deleted
		return live.Stopping
	}
	return live.Held
}

// ended reports whether a job has ended, or is about to and starts no pod any more.
func ended(j *batch.Job) bool {
	return has(j, batch.JobComplete) || has(j, batch.JobFailed) || has(j, batch.JobSuccessCriteriaMet) || has(j, batch.JobFailureTarget)
}

func has(j *batch.Job, kind batch.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == core.ConditionTrue {
			return true
		}
	}
	return false
}

// usage is what pods hold of a node.
type usage struct {
	devices int
	host    spec.Host
}

func (u usage) plus(o usage) usage { return usage{u.devices + o.devices, u.host.Plus(o.host)} }

type byNode map[string]usage

func (b byNode) add(pods ...*core.Pod) {
	for _, p := range pods {
		devices, host := podRequests(p)
		b[p.Spec.NodeName] = b[p.Spec.NodeName].plus(usage{devices, host})
	}
}

// slots returns the devices of the pods.
func (h *held) slots() live.Slots {
	out := live.Slots{}
	for _, p := range h.pods {
		if devices, _ := podRequests(p); devices > 0 {
			out[p.Spec.NodeName] += devices
		}
	}
	return out
}

// podRequests returns what a node needs for a pod, as kube-scheduler counts it: its containers and sidecars together, or an
// init container with the sidecars before it if that is more, and the overhead of the pod.
func podRequests(p *core.Pod) (devices int, host spec.Host) {
	var all, first usage
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		now := all.plus(requestsOf(c.Resources.Requests))
		if c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways {
			all = now
		}
		first = usage{max(first.devices, now.devices), first.host.Max(now.host)}
	}
	for i := range p.Spec.Containers {
		all = all.plus(requestsOf(p.Spec.Containers[i].Resources.Requests))
	}
	all = usage{max(all.devices, first.devices), all.host.Max(first.host)}
	if r := p.Spec.Resources; r != nil { // of the pod as a whole
		if q, ok := r.Requests[core.ResourceCPU]; ok {
			all.host.MilliCPUs = q.MilliValue()
		}
		if q, ok := r.Requests[core.ResourceMemory]; ok {
			all.host.Bytes = q.Value()
		}
	}
	all = all.plus(requestsOf(p.Spec.Overhead))
	return all.devices, all.host
}

func requestsOf(l core.ResourceList) (u usage) {
	for _, r := range DeviceResources {
		if q, ok := l[r]; ok {
			u.devices += int(q.Value())
		}
	}
	u.host = spec.Host{MilliCPUs: l.Cpu().MilliValue(), Bytes: l.Memory().Value()}
	return u
}

// observeNodes adds the nodes with devices to s, UsedDevices being those that are unhealthy, and returns the nodes that are
// lost.
func (c *Cluster) observeNodes(s *live.State) (down map[string]bool, err error) {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	down = map[string]bool{}
	usable := make(map[string]live.Node, len(nodes))
	for _, n := range nodes {
		node, has, err := c.nodeOf(n)
		down[n.Name] = node.Mode == live.Down
		id := n.Name + "/" + string(n.UID)
		if last, was := c.usable[id]; was && (!has || err != nil) {
			var fault live.Fault
			node, fault = keep(last, node, err)
			has, err = true, nil
			s.Faults = append(s.Faults, fault)
		}
		if has && err == nil {
			usable[id] = node
		}
		switch {
		case err != nil:
			s.Faults = append(s.Faults, live.Fault{Object: "node " + n.Name, Err: err})
		case has:
			s.Nodes = append(s.Nodes, node)
		}
	}
	c.usable = usable
	level(s.Nodes)
	return down, nil
}

// level gives equal machines equal CPUs and memory: what the operating system leaves differs a
// little, and jobs run on nodes of one type. All get those of the smallest, unless it has less
// than 7/8 of the largest.
func level(nodes []live.Node) {
	type machine struct {
		accelerator string
		devices     int
	}
	type host struct{ cpus, bytes float64 }
	most, least := map[machine]host{}, map[machine]host{}
	of := func(n *live.Node) machine { return machine{n.Type.Accelerator.Name, n.Type.Devices} }
	near := func(n *live.Node) bool {
		m := most[of(n)]
		return float64(n.Type.CPUs) >= m.cpus*7/8 && n.Type.HostBytes >= m.bytes*7/8
	}
	for i := range nodes {
		n := &nodes[i]
		m := most[of(n)]
		most[of(n)] = host{max(m.cpus, float64(n.Type.CPUs)), max(m.bytes, n.Type.HostBytes)}
	}
	for i := range nodes {
		if n := &nodes[i]; near(n) {
			l, ok := least[of(n)]
			if !ok {
				l = most[of(n)]
			}
			least[of(n)] = host{min(l.cpus, float64(n.Type.CPUs)), min(l.bytes, n.Type.HostBytes)}
		}
	}
	for i := range nodes {
		if n := &nodes[i]; near(n) {
			l := least[of(n)]
			n.Type.CPUs, n.Type.HostBytes = int(l.cpus), l.bytes
		}
	}
}
