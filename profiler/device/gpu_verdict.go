package device

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// throttleBound is the share of samples with a clock event from which step times are doubtful. Below it the
// median step time does not change.
const throttleBound = 0.01

// judge summarises the GPUs from one time to another. A measurement is in doubt, that is stored but not fitted,
// if in the timed part
//
//   - hardware or thermal slowdown, power brake or sync boost reduced clocks in
//     at least throttleBound of the samples (fewer give a note),
//   - a process other than the measured ones was on a device,
//
// or if, since the watch began, a device reported an uncorrected memory error or an Xid event, or stopped
// responding. The power limit alone is not a reason; EnvPowerCap has its share of samples.
func (p *gpuProbe) judge(from, to time.Time) Watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to, timed := window(from, to)
	v := newVerdict()
	sums := make([]bucket, len(p.records))
	joules, none := 0.0, 0
	for i := range p.records {
		sums[i] = p.records[i].within(from, to)
		joules += p.records[i].joules(from, to)
		if sums[i].n == 0 {
			none++
		}
	}
	if timed && none > 0 {
		v.note(profiler.EnvWarning, fmt.Sprintf("%d of %d GPUs gave no sample in the timed part", none, len(p.records)))
	}
	p.judgeClocks(v, sums)
	p.judgeSharing(v, from, to, timed)
	p.judgeFaults(v)
	describe(v.env, sums)
	few := slices.ContainsFunc(sums, func(b bucket) bool { return b.n < energySamples })
	w := v.watched()
	switch {
	case !timed || !(joules > 0): // or NaN
	case few || to.Sub(from) < energyPeriod:
		w.warn(fmt.Sprintf("energy was not measured: %.2g s of timed steps are too short (raise point.min_time)", to.Sub(from).Seconds()))
	default:
		w.EnergyJoules, w.AvgWatts = joules, joules/to.Sub(from).Seconds()
	}
	return w
}

// Energy is reported for timed parts at least this long. The driver updates its readings up to ten times a
// second, so one of ten samples in a second may fall outside.
const (
	energyPeriod  = time.Second
	energySamples = 9
)

// judgeClocks reports why clocks were reduced, worst device first.
func (p *gpuProbe) judgeClocks(v *verdict, sums []bucket) {
	for bit, reason := range clockReasonsByBit {
		worst, share, held := 0, 0.0, 0
		for i, b := range sums {
			if b.reasons[bit] == 0 {
				continue
			}
			held++
			if s := float64(b.reasons[bit]) / float64(b.hasReasons); s > share {
				worst, share = i, s
			}
		}
		text := fmt.Sprintf("%s on GPU %d in %.0f %% of samples", reason.name, p.devices[worst], math.Ceil(100*share))
		if held > 1 {
			text = fmt.Sprintf("%s on %d GPUs, GPU %d in %.0f %% of samples", reason.name, held, p.devices[worst], math.Ceil(100*share))
		}
		switch {
		case held == 0:
		case bit == reasonPowerCap:
			v.env[EnvPowerCap] = number(share)
		case reason.doubt && share >= throttleBound:
			v.doubt(profiler.EnvThrottle, text)
		case reason.doubt:
			v.note(profiler.EnvThrottle, text)
		}
	}
}

// judgeSharing reports other processes on the devices. Processes are listed every slowPeriod, so a process also
// counts if it was seen that long before or after.
func (p *gpuProbe) judgeSharing(v *verdict, from, to time.Time, timed bool) {
	from, to = from.Add(-slowPeriod), to.Add(slowPeriod)
	blind := timed && len(p.records) > 0
	for i := range p.records {
		s := &p.records[i]
		var others []string
		for _, pid := range slices.Sorted(maps.Keys(s.others)) {
			if o := s.others[pid]; !o.last.Before(from) && !o.first.After(to) {
				others = append(others, fmt.Sprintf("%d (%s)", pid, o.name))
			}
		}
		if len(others) > 0 {
			v.doubt(profiler.EnvShared, fmt.Sprintf("GPU %d was used by %s", p.devices[i], strings.Join(others[:min(len(others), 8)], ", ")))
		}
		l := s.hasPIDs(from, to)
		if l.ours == 0 && l.unknown > 1 {
			v.doubt(profiler.EnvShared, fmt.Sprintf("GPU %d was used by %d processes that cannot be identified from inside a container",
				p.devices[i], l.unknown))
		}
		blind = blind && !l.at.IsZero() && l.ours+l.unknown+len(others) == 0
	}
	if blind {
		v.note(profiler.EnvWarning, "the driver lists no processes here, so other processes on the GPUs would not be detected")
	}
}

// hasPIDs returns the largest numbers of processes listed at one time. Its time is zero if the driver listed
// none.
func (s *gpuRecord) hasPIDs(from, to time.Time) listing {
	var most listing
	for _, l := range s.lists {
		if l.at.Before(from) || l.at.After(to) {
			continue
		}
		most.at, most.ours, most.unknown = l.at, max(most.ours, l.ours), max(most.unknown, l.unknown)
	}
	return most
}

// judgeFaults reports hardware faults.
func (p *gpuProbe) judgeFaults(v *verdict) {
	for i := range p.records {
		s := &p.records[i]
		if s.ecc > s.eccAtFirst {
			v.doubt(profiler.EnvWarning, fmt.Sprintf("%d uncorrected memory errors on GPU %d", s.ecc-s.eccAtFirst, p.devices[i]))
		}
		if s.lost != "" {
			v.doubt(profiler.EnvWarning, fmt.Sprintf("GPU %d stopped responding: %s", p.devices[i], s.lost))
		}
	}
	var reported []string
	for _, e := range p.events {
		text := fmt.Sprintf("Xid %d", e.code)
		if what := xidNames[e.code]; what != "" {
			text += " (" + what + ")"
		}
		if e.device >= 0 && e.device < len(p.devices) {
			text += fmt.Sprintf(" on GPU %d", p.devices[e.device])
		}
		if !slices.Contains(reported, text) {
			reported = append(reported, text)
			v.doubt(profiler.EnvWarning, text)
		}
	}
}

// describe writes means and maxima to env.
func describe(env map[string]string, sums []bucket) {
	var total [metrics]stat
	for _, b := range sums {
		for m := range total {
			total[m].add(b.stats[m])
		}
	}
	for key, m := range map[string]metric{EnvUtil: smUtil, EnvMemUtil: memUtil, EnvSMClock: smClock, EnvMemClock: memClock} {
		if total[m].n > 0 {
			env[key] = number(total[m].mean())
		}
	}
	if s := total[memUsed]; s.n > 0 {
		env[EnvMemUsed] = fmt.Sprintf("%.0f", s.max)
	}
	if s := total[temperature]; s.n > 0 {
		env[EnvTemperature] = number(s.max)
	}
}

// xidNames names the most frequent events (NVIDIA, XID Errors, GPU deployment and management
// documentation).
var xidNames = map[uint64]string{
	13: "graphics engine exception", 31: "memory page fault", 43: "GPU stopped processing", 45: "preemptive cleanup",
	48: "double-bit memory error", 61: "internal microcontroller breakpoint", 62: "internal microcontroller halt",
	63: "memory page retired or row remapped", 64: "page retirement or row remap failed", 74: "NVLink error",
	79: "GPU has fallen off the bus", 94: "contained memory error", 95: "uncontained memory error",
	119: "GSP RPC timeout", 120: "GSP error",
}
