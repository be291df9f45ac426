package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// cannotRun returns why plan p cannot train m on samples of seq tokens, or "". It applies to exact plans too.
func cannotRun(m spec.Model, seq int, p spec.Plan) string {
	p = p.Normal()
	if err := p.CheckBounds(); err != nil {
		return err.Error()
	}
	if err := p.Check(m); err != nil {
		return unprefixed(err)
	}
	if why := cmp.Or(planner.CannotSplit(&m, seq, &p), planner.CannotOffload(&p)); why != "" {
		return m.Name + ": " + why
	}
	return ""
}

// deviceMismatch returns why the devices of m do not suit c, or "". It applies to exact plans too.
func (m Machine) deviceMismatch(c spec.Config) string {
	total, nodes, most, least := c.Shape.Stats()
	switch {
	case c.Alone() && len(m.Devices) > 0 && most%c.Plan.TP == 0 && least%c.Plan.TP == 0:
		return ""
	case nodes > 1 && m.Nodes <= 1:
		return fmt.Sprintf("shape %s has %d nodes, this machine is one", c.Shape, nodes)
	case nodes > max(m.Nodes, 1):
		return fmt.Sprintf("shape %s has %d nodes, a point may use %d", c.Shape, nodes, m.Nodes)
	case nodes > 1 && most != least:
		return fmt.Sprintf("shape %s has different numbers of devices on its nodes: launchers start equally many on each", c.Shape)
	case nodes > 1 && most > len(m.Devices):
		return fmt.Sprintf("shape %s needs %d devices on a node, nodes have %d", c.Shape, most, len(m.Devices))
	case nodes == 1 && total > len(m.Devices):
		return fmt.Sprintf("shape %s needs %d devices, this machine has %d", c.Shape, total, len(m.Devices))
	case most%c.Plan.TP != 0 || least%c.Plan.TP != 0:
		return fmt.Sprintf("tp=%d does not divide the devices of a node (%s)", c.Plan.TP, c.Shape)
	}
	return ""
}

// lacks returns the feature that the device or the training stack lacks to run c, or "". It applies to exact
// plans too.
func (m Machine) lacks(c spec.Config) string {
	if have := m.Accelerator.Formats(); len(have) > 0 && !slices.Contains(have, c.Plan.Precision) {
		return fmt.Sprintf("%s has no %s, only %s", m.Accelerator.Name, c.Plan.Precision, join(have))
	}
	if m.Lacks != nil {
		return m.Lacks(c)
	}
	return ""
}

// memoryTolerance is the factor by which the memory estimate of a point may exceed its device. For most
// published runs the estimate is within a third of the measured value, so points up to this factor are tried.
const memoryTolerance = 1.5

// tooLarge returns why c cannot fit in the memory of its devices or, if offloaded, of the host; "" if it may
// fit. There is no tolerance for the host: offloaded bytes are known exactly, and running out of host memory
// may kill other processes.
func (m Machine) tooLarge(c spec.Config) string {
	if need, ok := memoryShare(c); ok && need > memoryTolerance {
		return fmt.Sprintf("its estimated memory is more than %g times the %.3g GiB of %s", memoryTolerance,
			c.Accelerator.MemBytes/memory.GiB, c.Accelerator.Name)
	}
	if m.HostBytes <= 0 || c.Plan.Offload == spec.OffloadNone {
		return ""
	}
	b, err := memory.Estimate(c)
	if need := b.HostBytes * float64(c.RunDevices()); err == nil && need > m.HostBytes {
		return fmt.Sprintf("offloads an estimated %.3g GiB, but this machine has %.3g GiB of host memory", need/memory.GiB, m.HostBytes/memory.GiB)
	}
	return ""
}

// memoryShare returns the estimated peak of c as a share of its device's memory.
func memoryShare(c spec.Config) (share float64, ok bool) {
	if c.Accelerator.MemBytes <= 0 {
		return 0, false
	}
	b, err := memory.Estimate(c)
	if err != nil {
		return 0, false
	}
	return b.Total() / c.Accelerator.MemBytes, true
}

// config returns the configuration that runs p on m. The shape has the CPUs that belong to its
// devices.
func (m Machine) config(model spec.Model, seq int, s spec.Shape, p spec.Plan, threads int) spec.Config {
	p = p.Normal()
	p.Precision = cmp.Or(p.Precision, m.precision())
	n := s.Total()
	switch {
	case threads > 0:
		s.CPUs = threads * n
	case m.CPU:
		s.CPUs = n
	case m.PerNode > 0:
		s.CPUs = m.CPUs * n / m.PerNode
	}
	return spec.Config{
		Model: model, SeqLen: cmp.Or(seq, model.SeqLen), Plan: p, Accelerator: m.Accelerator,
		Shape: s, Link: m.Link, Framework: m.Framework,
	}
}

// precision returns the default precision. On CPUs it is FP32: most convert other formats in
// software.
func (m Machine) precision() spec.Precision {
	if m.CPU {
		return spec.FP32
	}
	return m.Accelerator.DefaultPrecision()
}

func join[T ~string](words []T) string {
	s := make([]string, len(words))
	for i, w := range words {
		s[i] = string(w)
	}
	return strings.Join(s, ", ")
}
