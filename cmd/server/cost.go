package server

import (
	"math"
	"math/bits"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// Estimated times, in seconds of one core. BenchmarkSearchCost compares them with
// measured ones. They need only order searches and tell short from long.
const (
	planSec     = 10e-6 // per plan that is ranked
	pointSec    = 50e-6 // per further point of a curve; most of its plans are pruned
	questionSec = 20e-6 // per question of a batch
	// shortSearch is the estimate up to which a search is short.
	shortSearch = 40e-3
)

// searchSize is what the time of a search depends on.
type searchSize struct {
	devices, batch int     // the largest
	points         float64 // numbers of devices and batches
	share          float64 // of the default space of plans
}

// ranked is the time of a search that compares all plans of every point.
func (z searchSize) ranked() float64 { return z.points * z.plans() * planSec }

// pruned is the time of a search for the best plan of every point.
func (z searchSize) pruned() float64 { return z.plans()*planSec + z.points*pointSec }

// plans estimates the number of plans of one point: the degrees of tensor and pipeline
// parallelism, the micro-batches, and the modes of memory saving.
func (z searchSize) plans() float64 {
	const modes = 4 * 3 * 3 // ZeRO, recompute, offload
	return z.share * modes * (1 + math.Log(float64(max(z.devices, 1)))) * float64(1+bits.Len(uint(max(z.batch, 1))))
}

// costOf estimates the seconds that the search of a request takes, before it starts;
// 0 for requests without a search. in may hold values that Check refuses.
func costOf(in any) float64 {
	switch in := in.(type) {
	case *body[BatchRequest]:
		return questionSec * float64(len(in.Body.Questions))
	case *body[answer.PlanRequest]:
		q := &in.Body
		extra := 1 + float64(q.Probe)
		if q.Pareto {
			extra += 2
		}
		return extra * sizeOf(q.Devices, q.MinDevices, planner.Objective(q.Objective), q.MinBatch, q.MaxBatch, q.GlobalBatch, share(&q.Space)).ranked()
	case *body[answer.CurveRequest]:
		q := &in.Body
		lines := max(len(q.CPUs), 1) * max(len(q.HostGiB), 1) * max(len(q.NetworkGbps), 1)
		return float64(lines) * sizeOf(q.MaxDevices, 1, planner.Cost, q.MinBatch, q.MaxBatch, q.GlobalBatch, share(&q.Space)).pruned()
	case *body[nextplans.CalibrateNextRequest]:
		q := &in.Body
		return q.Cost(planSec * sizeOf(q.Devices, 0, planner.Throughput, 0, 0, max(q.GlobalBatch, nextplans.UsualBatch*q.Devices), 1).plans())
	case *body[answer.FitCheckRequest]:
		return sizeOf(in.Body.Devices, 0, planner.Throughput, 0, 0, in.Body.GlobalBatch, 1).ranked()
	case *body[answer.CheckRequest]: // single changes, and with another device all plans
		if in.Body.To == "" {
			return shortSearch / 2
		}
		return sizeOf(max(in.Body.Devices, 1024), 0, planner.Throughput, 0, 0, max(in.Body.GlobalBatch, 1024), 1).ranked()
	case *body[remote.PlanRequest]:
		q := &in.Body.Request
		return sizeOf(max(q.Devices, q.Shape.Total()), q.MinDevices, q.Objective, q.MinBatch, q.MaxBatch, q.GlobalBatch, 1).ranked()
	}
	return 0
}

func sizeOf(devices, minDevices int, o planner.Objective, minBatch, maxBatch, batch int, share float64) searchSize {
	z := searchSize{devices: devices, batch: max(batch, maxBatch), points: 1, share: share}
	if minDevices > 0 || o == planner.Cost || o == planner.MinDevices {
		z.points = float64(max(devices-max(minDevices, 1)+1, 1))
	}
	if minBatch > 0 && maxBatch > minBatch { // 2^k and 3*2^k, as the planner takes
		z.points *= 2 + 2*math.Log2(float64(maxBatch)/float64(minBatch))
	}
	return z
}

// share is the part of the default modes that s has, times its schedules and precisions.
func share(s *query.Space) float64 {
	part := func(n, of int) float64 {
		if n == 0 {
			return 1
		}
		return float64(n) / float64(of)
	}
	return part(len(s.ZeRO), 4) * part(len(s.Recompute), 3) * part(len(s.Offload), 3) * float64(max(len(s.Schedule), 1)*max(len(s.Precisions), 1))
}
