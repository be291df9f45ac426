package device

import (
	"sync"
	"time"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// A gpuSource reads devices, by position in the list it was made with. NVML is one; tests have others. It is
// used by one goroutine.
type gpuSource interface {
	// read samples device i; if slow is set, including the fields of gpuReading that change slowly.
	read(i int, now time.Time, slow bool) gpuReading
	// xids returns the critical events since the last call.
	xids() []xid
	close()
}

// A gpuReading is a reading plus values that are read less often.
type gpuReading struct {
	reading
	pids           []int // of compute processes
	hasPIDs        bool  // pids is valid
	uncorrected    uint64
	hasUncorrected bool   // uncorrected is valid
	lost           string // why the device stopped responding
}

// An xid is a critical event of a device.
type xid struct {
	device int // position, -1 = unknown
	code   uint64
}

// An otherProcess is a process on a device that does not belong to the measurement.
type otherProcess struct {
	name        string
	first, last time.Time
}

// maxKept is the largest number of processes and of events that are kept per device.
const maxKept = 64

// A gpuProbe samples some GPUs.
type gpuProbe struct {
	source    gpuSource
	devices   []int // indices
	processes *measuredProcesses

	mu      sync.Mutex
	records []gpuRecord // by position
	events  []xid
}

// gpuRecord holds the samples of one GPU.
type gpuRecord struct {
	history
	lost            string
	hasUncorrected  bool
	ecc, eccAtFirst uint64
	others          map[int]*otherProcess // by process id
	lists           []listing             // newest last
}

// A listing counts the processes on a device at one time.
type listing struct {
	at            time.Time
	ours, unknown int // unknown: processes that are not visible on this machine
}

// maxListings is the size of gpuRecord.lists. When it is full, every second listing is dropped.
const maxListings = 512

func newGPUProbe(source gpuSource, devices []int, k *measuredProcesses) *gpuProbe {
	return &gpuProbe{source: source, devices: devices, processes: k, records: make([]gpuRecord, len(devices))}
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
	p.events = p.events[:min(len(p.events), maxKept)]
}

func (p *gpuProbe) close() { p.source.close() }

// keep adds a reading of device i.
func (p *gpuProbe) keep(i int, r gpuReading) {
	list := listing{at: r.at}
	others := map[int]string{}
	for _, pid := range r.pids { // before taking the lock, since it reads files
		switch ours, found := p.processes.has(pid, r.at); {
		case !found:
			list.unknown++
		case ours:
			list.ours++
		default:
			other, _ := procfs.Read(p.processes.root, pid)
			others[pid] = other.Name
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.records[i]
	if r.lost != "" {
		s.lost = r.lost
		return
	}
	s.add(r.reading)
	if r.hasUncorrected && !s.hasUncorrected {
		s.hasUncorrected, s.eccAtFirst = true, r.uncorrected
	}
	if r.hasUncorrected {
		s.ecc = max(s.ecc, r.uncorrected)
	}
	if r.hasPIDs {
		s.list(list, others)
	}
}

// list adds the processes listed at one time.
func (s *gpuRecord) list(l listing, others map[int]string) {
	if len(s.lists) == maxListings {
		for i := range maxListings / 2 {
			s.lists[i] = s.lists[2*i]
		}
		s.lists = s.lists[:maxListings/2]
	}
	s.lists = append(s.lists, l)
	if s.others == nil {
		s.others = map[int]*otherProcess{}
	}
	for pid, name := range others {
		switch known := s.others[pid]; {
		case known != nil:
			known.last = l.at
		case len(s.others) < maxKept:
			s.others[pid] = &otherProcess{name, l.at, l.at}
		}
	}
}
