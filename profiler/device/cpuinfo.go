package device

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// cpuinfo holds one processor of /proc/cpuinfo by key. All processors of a machine are assumed to equal the
// first. Package procfs cannot be used here: it parses only the architecture it is built for, and drops ARM
// part numbers.
type cpuinfo map[string]string

func (c cpuinfo) int(key string) int {
	n, err := strconv.ParseInt(c[key], 0, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

func (c cpuinfo) float(key string) float64 {
	v, err := strconv.ParseFloat(c[key], 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// has reports whether the processor has all of the flags.
func (c cpuinfo) has(flags ...string) bool {
	have := " " + cmp.Or(c["flags"], c["Features"]) + " "
	for _, f := range flags {
		if !strings.Contains(have, " "+f+" ") {
			return false
		}
	}
	return true
}

// parseCPU parses /proc/cpuinfo. maxHz is the highest clock from cpufreq, 0 if unknown; it is used only if
// cpuinfo has no clock. Other text gives a CPU without threads.
func parseCPU(text string, maxHz float64, arch string) CPU {
	c := CPU{Arch: arch}
	var first cpuinfo
	sockets, cores := map[string]bool{}, map[string]bool{}
	for block := range strings.SplitSeq(text, "\n\n") {
		p := parseProcessor(block)
		if _, ok := p["processor"]; !ok {
			continue
		}
		if first == nil {
			first = p
		}
		c.Threads++
		sockets[p["physical id"]] = true
		cores[p["physical id"]+"/"+cmp.Or(p["core id"], p["processor"])] = true
	}
	if first == nil {
		return c
	}
	c.Sockets, c.Cores = len(sockets), len(cores)
	c.Vendor, c.Model = vendor(first), cmp.Or(first["model name"], first["Processor"], armName(first))
	c.Brand = brand(c.Model, c.Vendor)
	c.ClockHz = math.Round(cmp.Or(clock(first), maxHz)/1e8) * 1e8
	c.SIMD, c.BF16, c.rates = simd(first, c.Vendor, c.Model)
	return c
}

func parseProcessor(block string) cpuinfo {
	p := cpuinfo{}
	for line := range strings.Lines(block) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			p[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return p
}

var clockInName = regexp.MustCompile(`@ *([0-9]+(?:\.[0-9]+)?) *([GM])Hz`)

// clock returns the nominal clock of an x86 processor in Hz, 0 if unknown. It tries, in this order: the model
// name ("@ 2.60GHz"); half of BogoMIPS, the rate of a constant time stamp counter, which is the same on every
// boot; and "cpu MHz", the current clock. On ARM, BogoMIPS is the rate of a timer, unrelated to the clock.
func clock(p cpuinfo) float64 {
	if m := clockInName.FindStringSubmatch(p["model name"]); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		if m[2] == "G" {
			return v * 1e9
		}
		return v * 1e6
	}
	if p.has("constant_tsc") {
		if v := p.float("bogomips"); v > 0 {
			return v / 2 * 1e6
		}
	}
	return p.float("cpu MHz") * 1e6
}

// vendor returns the maker of the processor, in one word if known.
func vendor(p cpuinfo) string {
	switch id := p["vendor_id"]; id {
	case "GenuineIntel":
		return "Intel"
	case "AuthenticAMD":
		return "AMD"
	case "HygonGenuine":
		return "Hygon"
	case "":
		return armVendors[p.int("CPU implementer")]
	default:
		return id
	}
}

var (
	marks  = regexp.MustCompile(`\((?i:r|tm|c)\)`)
	filler = regexp.MustCompile(`(?i)\b([0-9]+-core|dual-core|quad-core|six-core|eight-core|cpu|processor|with radeon.*)( |$)`)
)

// brand returns the model name without trade marks, clock, core count and filler words, with the
// vendor in front: "Intel Xeon Gold 6248".
func brand(model, vendor string) string {
	s := marks.ReplaceAllString(model, " ")
	s, _, _ = strings.Cut(s, "@")
	s = filler.ReplaceAllString(s, " ")
	s = strings.Join(strings.Fields(s), " ")
	if !strings.HasPrefix(strings.ToLower(s), strings.ToLower(vendor)) {
		s = strings.TrimSpace(vendor + " " + s)
	}
	return s
}
