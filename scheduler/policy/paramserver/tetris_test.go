package paramserver

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// TestTetrisAlignment checks the sum over resources of the share that the tasks need times the
// free share. Resources without a limit do not count.
func TestTetrisAlignment(t *testing.T) {
	whole := spec.NodeGroup{Devices: 4, CPUs: 16, HostBytes: 64}
	left := &nodeRoom{devices: 2, host: spec.Host{MilliCPUs: 12000, Bytes: 32}}
	for _, c := range []struct {
		name    string
		g       spec.NodeGroup
		devices int
		at      Counts
		want    float64 // of a node with half its devices and memory and three quarters of its CPUs free
		weight  float64 // of one of each, with 10 s left
	}{
		{"all", whole, 1, OneOfEach, 1./4*1/2 + 3./16*3/4 + 12./64*1/2, 10 * (1./4 + 3./16 + 12./64)},
		{"two replicas", whole, 1, Counts{2, 0}, 2./4*1/2 + 2./16*3/4 + 8./64*1/2, 10 * (1./4 + 3./16 + 12./64)},
		{"no devices", whole, 0, OneOfEach, 3./16*3/4 + 12./64*1/2, 10 * (3./16 + 12./64)},
		{"devices alone are limited", spec.NodeGroup{Devices: 4}, 1, OneOfEach, 1. / 4 * 1 / 2, 10 * 1. / 4},
	} {
		j := &spec.Job{Devices: c.devices, Host: spec.Host{MilliCPUs: 1000, Bytes: 4}, ServerHost: spec.Host{MilliCPUs: 2000, Bytes: 8}}
		if got := alignment(left, &c.g, j, c.at); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: alignment %g, want %g", c.name, got, c.want)
		}
		k := &packer{PackedJob: &PackedJob{JobState: &scheduler.JobState{Job: j}}, remaining: 10}
		if got := k.weight(&c.g); math.Abs(got-c.weight) > 1e-12 {
			t.Errorf("%s: weight %g, want %g", c.name, got, c.weight)
		}
	}
}

// TestTetrisBest checks the score of section 3.3 against a case worked by hand: a node of 1 device and 10
// CPUs. One job needs the device and 2 CPUs (alignment 1.2), another 2 CPUs (0.2).
func TestTetrisBest(t *testing.T) {
	const device, cpus = 1, 0
	for _, c := range []struct {
		name  string
		jobs  []int
		left  []float64 // seconds
		score func(alignment, size float64) float64
		want  int // of the jobs, -1 = none
	}{
		{"score 1.2 - 1.4/39*20 against 0.2 - 1.4/39*19", []int{cpus, device}, []float64{19 / 0.2, 20 / 1.2}, tetrisScore, 1},
		{"score 1.2 - 1.4/39*38 against 0.2 - 1.4/39*1", []int{device, cpus}, []float64{38 / 1.2, 1 / 0.2}, tetrisScore, 1},
		{"much left", []int{cpus, device}, []float64{1 / 0.2, 38 / 1.2}, func(alignment, size float64) float64 { return alignment + size }, 1},
		{"nothing is known of what is left", []int{cpus, device}, []float64{0, 0}, tetrisScore, 1},
		{"of equal ones the first", []int{cpus, cpus}, []float64{5, 5}, tetrisScore, 0},
		{"no jobs", nil, nil, tetrisScore, -1},
	} {
		f := packingOf([]spec.NodeGroup{{Count: 1, Devices: 1, CPUs: 10}})
		var jobs []*packer
		for i, devices := range c.jobs {
			jobs = append(jobs, &packer{PackedJob: packedJobOf(devices, 1, 1), target: []Counts{OneOfEach}, remaining: c.left[i]})
		}
		got := tetris{rules: Variant{TetrisScore: c.score}}.best(f, jobs, 0)
		if c.want < 0 && got != nil || c.want >= 0 && got != jobs[c.want] {
			t.Errorf("%s: %+v", c.name, got)
		}
		f.nodes[0].down = true
		if got := (tetris{}).best(f, jobs, 0); got != nil {
			t.Errorf("%s: a job gets a node that is down", c.name)
		}
	}
}

// TestTetrisNext checks that a job gets one of each first, and then the tasks it still lacks.
func TestTetrisNext(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 1, Devices: 8, CPUs: 80}, {Count: 1, Devices: 8, CPUs: 80}})
	for _, c := range []struct {
		has, want Counts
		group     int
		next      Counts
	}{
		{Counts{}, Counts{3, 1}, 0, OneOfEach}, {OneOfEach, Counts{3, 1}, 0, OneReplica}, {Counts{3, 1}, Counts{3, 1}, 0, Counts{}},
		{Counts{1, 1}, Counts{1, 4}, 0, OneServer}, {OneOfEach, Counts{3, 1}, 1, Counts{}},
	} {
		k := &packer{PackedJob: packedJobOf(1, 1, 1), target: []Counts{c.want, c.want}}
		f.giveOnNode(k.PackedJob, 0, c.has)
		if got := (tetris{}).next(f, k, c.group); got != c.next {
			t.Errorf("has %v of %v, in group %d: next %v, want %v", c.has, c.want, c.group, got, c.next)
		}
		f.TakeBack(k.PackedJob, 0)
	}
}

// TestTetrisSize checks that the size of a job is its remaining time at the speed of one of
// each, or the device-seconds it has received if that speed is not predicted.
func TestTetrisSize(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 1, Devices: 8}})
	j := packedJobOf(1, 0, 0)
	j.Remaining, j.Attained = 50, 7
	for _, c := range []struct {
		name string
		o    *fixedSpeeds
		want float64
	}{{"known", &fixedSpeeds{samplesPerSec: map[Counts]float64{{1, 1}: 120, {2, 1}: 600}}, 5}, {"unknown", &fixedSpeeds{}, 7}} {
		p := tetris{Speeds: NewSpeeds(policy.Deps{Oracle: c.o, Servers: anyNumbers{}})}
		if got, err := p.sizeOf(t.Context(), f, j); got != c.want || err != nil {
			t.Errorf("%s: %g s, error %v, want %g", c.name, got, err, c.want)
		}
	}
}
