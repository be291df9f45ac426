package analytic

import (
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// machine holds the rates that kernels and collectives reach on a Config's devices and links: the datasheet
// rates times the shares of constants.go.
type machine struct {
	k     *constants
	gen   *generation
	share *shares
	stack traits

	peak16 float64 // 16-bit multiplications at their ceiling, FLOP/s
	flash  float64 // fused attention, FLOP/s; 0 = none
	mem    float64 // streaming kernels, bytes/s

	intra  float64 // ring bandwidth per device inside a domain, bytes/s
	inter  float64 // bandwidth out of one domain, bytes/s
	host   float64 // host link per device, bytes/s
	domain int     // devices joined by the scale-up link
	mesh   int     // devices that links join directly; 0 = through a switch
	cube   bool    // a mesh of eight is a cube
	total  int     // devices in total, 0 = given by the plan
	cpus   float64 // CPU threads per device over usualThreads, 1 if not recorded

	fp32, tf32, fp8, fp4 float64 // datasheet peaks, FLOP/s; 0 = the device lacks the format

	lacks int // set of lack... bits, without those of the plan
	sheet datasheet
}

// datasheet holds the rates before constants are applied: FLOP/s in 16 bits, bytes/s.
type datasheet struct {
	generation   int
	peak, mem    float64
	intra, inter float64
	host         float64
}

// warnings returns the assumptions made for a plan with precision p.
func (m *machine) warnings(p spec.Precision) []error {
	lacks := m.lacks
	if p.Format() == spec.FP8 && !(m.fp8 > 0 && m.share.gemm8 > 0) || p == spec.FP4 && !(m.fp4 > 0 && m.share.gemm4 > 0) {
		lacks |= lackFormat
	}
	return lackWarnings[lacks]
}

// Values that a Config may lack. Each has a default and a warning. The table holds every combination, so that
// predictions allocate nothing.
const (
	lackIntra = 1 << iota
	lackInter
	lackShape
	lackPeak
	lackFormat // depends on the plan
	lackCount
)

var lackWarnings = func() (out [lackCount][]error) {
	msgs := []error{
		errors.New("analytic: the configuration has no bandwidth inside the node: assuming the accelerator's own link"),
		errors.New("analytic: the configuration has no bandwidth between nodes: assuming the usual network of the accelerator's generation"),
		errors.New("analytic: the configuration has no shape: assuming nodes of 8 devices"),
		errors.New("analytic: the accelerator has no peak rate: assuming that of the generation's largest model, scaled by the square root of the power limits"),
		errors.New("analytic: the accelerator lacks the plan's number format: assuming the next wider one"),
	}
	for lacks := range out {
		for i, m := range msgs {
			if lacks&(1<<i) != 0 {
				out[lacks] = append(out[lacks], m)
			}
		}
	}
	return out
}()

// newMachine reads the devices and links of c into m. If a required value is missing, the error names it and
// wraps perfmodel.ErrNotCovered.
func newMachine(v variant, c *spec.Config, m *machine) error {
	a := &c.Accelerator
	m.sheet.generation = generationOf(a.Arch)
	m.gen = &generations[m.sheet.generation]
	lacks := 0
	peak := a.Peak(spec.BF16)
	m.fp8, m.fp4 = a.FP8, a.FP4
	if peak <= 0 && m.gen.peak16 > 0 && a.Watts > 0 {
		derate := min(math.Sqrt(a.Watts/m.gen.watts), 1)
		peak, m.fp8 = m.gen.peak16*derate, m.gen.peak8*derate
		lacks |= lackPeak
	}
	m.fp32, m.tf32 = firstPositive(a.FP32, peak/16), firstPositive(a.TF32, a.FP32, peak/2)
	if peak <= 0 || a.MemBps <= 0 {
		return fmt.Errorf("analytic: accelerator %q has a peak of %g FLOP/s and %g bytes/s of memory bandwidth, want both above 0: %w",
			a.Name, peak, a.MemBps, perfmodel.ErrNotCovered)
	}
	m.sheet.peak, m.sheet.mem = peak, a.MemBps

	total, _, most, least := c.Shape.Stats()
	m.total = total
	if total == 0 {
		lacks |= lackShape
		most, least = 8, 8
	}
	m.cpus = 1
	if c.Shape.CPUs > 0 && total > 0 {
		m.cpus = float64(c.Shape.CPUs) / float64(total) / usualThreads
	}
	m.domain = a.Domain(least)
	if mesh, cube := isMesh(a); mesh {
		m.cube = cube
		if m.mesh = most; total <= most { // a part of one node
			m.mesh = max(most, 8)
		}
	}
	m.links(c, most, &lacks)
	m.lacks = lacks
	m.stack = v.stack
	m.use(v.k)
	return nil
}

// usualThreads is the default number of CPU threads per device: 96 on a node of 8.
const usualThreads = 12

// links reads the links of c, on nodes of perNode devices.
func (m *machine) links(c *spec.Config, perNode int, lacks *int) {
	a, sheet := &c.Accelerator, &m.sheet
	sheet.intra = firstPositive(c.Link.IntraBps, a.ScaleUpBps, a.HostBps, pcieBps)
	if c.Link.IntraBps <= 0 && m.total != 1 {
		*lacks |= lackIntra
	}
	sheet.inter = c.Link.InterBps
	if sheet.inter <= 0 {
		sheet.inter = m.gen.interBps * float64(perNode)
		if m.total > m.domain || m.total == 0 {
			*lacks |= lackInter
		}
	}
	if m.domain > perNode { // the domain has the networks of several nodes
		sheet.inter *= float64(m.domain) / float64(perNode)
	}
	sheet.host = firstPositive(c.Link.HostBps, a.HostBps, hostBps)
	if host := firstPositive(c.Link.HostBps, a.HostBps); host > 0 && m.gen.arch != "" {
		// A GPU reaches the network through its host link; the link of another type of chip may not be on the way.
		sheet.inter = min(sheet.inter, host*float64(m.domain))
	}
}

// use applies constants to the datasheet rates.
func (m *machine) use(k *constants) {
	sheet := &m.sheet
	m.k, m.share = k, &k.shares[sheet.generation]
	m.peak16 = sheet.peak * m.share.gemm
	m.flash = 0
	if !m.stack.unfused {
		m.flash = sheet.peak * m.share.flash
		switch {
		case m.stack.torch:
			m.flash *= k.torchFlash
		case m.stack.async && m.gen.arch == "Hopper":
			m.flash *= k.hopperFlash
		}
	}
	m.mem = sheet.mem * k.memShare
	m.intra, m.inter = sheet.intra*m.share.ring, sheet.inter*k.netShare
	m.host = sheet.host * k.hostShare
}

func firstPositive(v ...float64) float64 {
	for _, x := range v {
		if x > 0 {
			return x
		}
	}
	return 0
}

// wide returns the ceiling rate of multiplications that are not quantized: 32-bit if p is a 32-bit format, else
// 16-bit.
func (m *machine) wide(p spec.Precision) float64 {
	if p == spec.FP32 || p == spec.TF32 {
		rate, _ := m.matmul(p)
		return rate
	}
	return m.peak16
}

// matmul returns the ceiling rate of the layers' multiplications in p, in FLOP/s, and whether they are
// quantized.
func (m *machine) matmul(p spec.Precision) (flops float64, quantized bool) {
	switch p {
	case spec.FP8, spec.MXFP8, spec.FP8Rowwise:
		if m.fp8 > 0 && m.share.gemm8 > 0 {
			return m.fp8 * m.share.gemm8 * m.k.recipe(p), true
		}
	case spec.FP4:
		if m.fp4 > 0 && m.share.gemm4 > 0 {
			return m.fp4 * m.share.gemm4, true
		}
		return m.matmul(spec.FP8)
	case spec.FP32:
		return m.fp32 * m.share.gemm * m.k.fp32GEMM, false
	case spec.TF32:
		return m.tf32 * m.share.gemm * m.k.fp32GEMM, false
	}
	return m.peak16, false
}
