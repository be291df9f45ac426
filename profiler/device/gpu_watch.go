package device

import (
	"sync"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// A gpuSource is NVML, as far as a gpuProbe needs it. Devices are by position
// in the list it was made with.
type gpuSource interface {
	// read asks device i; with slow set also what gpuReading says.
	read(i int, now time.Time, slow bool) gpuReading
	// xids returns the critical events since it was last called.
	xids() []xid
	close()
}

// A gpuReading is a reading and what is asked for seldom.
type gpuReading struct {
	reading
	pids        []int // of compute processes
	listed      bool  // pids was told
	uncorrected uint64
	counted     bool   // uncorrected was told
	lost        string // why the device does not answer any more
}

// An xid is a critical event of a device.
type xid struct {
	device int // position, -1 = not known
	code   uint64
}

// A sighting is a process that was seen on a device.
type sighting struct {
	name        string
	first, last time.Time
}

// kept bounds the processes and events that are remembered of a device.
const kept = 64

// A gpuProbe looks at some GPUs.
type gpuProbe struct {
	source  gpuSource
	devices []int // indices
	kin     *kin

	mu     sync.Mutex
	seen   []gpuSeen // by position
	events []xid
}

// gpuSeen is what was seen of one GPU.
type gpuSeen struct {
	history
	lost            string
	counted         bool
	ecc, eccAtFirst uint64
	others          map[int]*sighting // processes that are not measured, by id
	lists           []listing         // newest last
}

// A listing is how many processes the driver listed on a device at some time.
type listing struct {
	at            time.Time
	ours, unknown int // unknown ones are not among the processes of this machine
}

// listings bounds gpuSeen.lists; beyond, every second one is forgotten.
const listings = 512

func newGPUProbe(source gpuSource, devices []int, k *kin) *gpuProbe {
	return &gpuProbe{source: source, devices: devices, kin: k, seen: make([]gpuSeen, len(devices))}
}

func (p *gpuProbe) sample(now time.Time, slow bool) {
	for i := range p.devices {
		p.keep(i, p.source.read(i, now, slow))
	}
	if !slow {
		return
	}
	events := p.source.xids()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, events...)
	p.events = p.events[:min(len(p.events), kept)]
}

func (p *gpuProbe) close() { p.source.close() }

// keep adds a reading of device i.
func (p *gpuProbe) keep(i int, r gpuReading) {
	list := listing{at: r.at}
	others := map[int]string{}
	for _, pid := range r.pids { // outside the lock: it reads files
		switch ours, found := p.kin.has(pid, r.at); {
		case !found:
			list.unknown++
		case ours:
			list.ours++
		default:
			other, _ := procfs.Read(p.kin.root, pid)
			others[pid] = other.Name
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.seen[i]
	if r.lost != "" {
		s.lost = r.lost
		return
	}
	s.add(r.reading)
	if r.counted && !s.counted {
		s.counted, s.eccAtFirst = true, r.uncorrected
	}
	if r.counted {
		s.ecc = max(s.ecc, r.uncorrected)
	}
	if r.listed {
		s.list(list, others)
	}
}

// list adds the processes of one time.
func (s *gpuSeen) list(l listing, others map[int]string) {
	if len(s.lists) == listings {
		for i := range listings / 2 {
			s.lists[i] = s.lists[2*i]
		}
		s.lists = s.lists[:listings/2]
	}
	s.lists = append(s.lists, l)
	if s.others == nil {
		s.others = map[int]*sighting{}
	}
	for pid, name := range others {
		switch known := s.others[pid]; {
		case known != nil:
			known.last = l.at
		case len(s.others) < kept:
			s.others[pid] = &sighting{name, l.at, l.at}
		}
	}
}
