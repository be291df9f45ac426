package server

import (
	"math"
	"math/bits"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// Estimated times, in seconds of one core. BenchmarkSearchCost measures them; it gave
// 0.2 to 2 us per plan on two cores of a shared server.
const (
	planSec     = 1e-6  // per plan of a search
	questionSec = 20e-6 // per question of a batch
	// shortSearch is the estimate up to which a search is short. About 20 such searches
	// a second leave a core half idle.
	shortSearch = 25e-3
)

// costOf estimates the seconds that the search of a request takes, before it starts;
// 0 for requests without a search. in may hold values that Check refuses.
func costOf(in any) float64 {
	switch in := in.(type) {
	case *body[BatchRequest]:
		return questionSec * float64(len(in.Body.Questions))
	case *body[PlanRequest]:
		q := &in.Body
		return plans(q.Devices, q.MinDevices, planner.Objective(q.Objective), &q.BatchRange, q.GlobalBatch) * share(&q.Space) * planSec
	case *body[CurveRequest]:
		q := &in.Body
		lines := max(len(q.CPUs), 1) * max(len(q.HostGiB), 1) * max(len(q.NetworkGbps), 1)
		return float64(lines) * plans(q.MaxDevices, 1, planner.Cost, &q.BatchRange, q.GlobalBatch) * share(&q.Space) * planSec
	case *body[FitCheckRequest]:
		q := &in.Body
		return plans(q.Devices, 0, planner.Throughput, &query.BatchRange{}, q.GlobalBatch) * planSec
	case *body[remote.PlanRequest]:
		q := &in.Body.Request
		return plans(max(q.Devices, q.Shape.Total()), q.MinDevices, q.Objective, &query.BatchRange{MinBatch: q.MinBatch, MaxBatch: q.MaxBatch}, q.GlobalBatch) * planSec
	}
	return 0
}

// plans estimates the number of plans of a search.
func plans(devices, minDevices int, o planner.Objective, b *query.BatchRange, batch int) float64 {
	counts := 1.0
	if minDevices > 0 || o == planner.Cost || o == planner.MinDevices {
		counts = float64(max(devices-max(minDevices, 1)+1, 1))
	}
	batches := 1.0
	if b.MinBatch > 0 && b.MaxBatch > b.MinBatch { // 2^k and 3*2^k, as the planner takes
		batches = 2 + 2*math.Log2(float64(b.MaxBatch)/float64(b.MinBatch))
	}
	return counts * batches * splits(devices) * (1 + float64(bits.Len(uint(max(batch, b.MaxBatch, 1)))))
}

// splits estimates the data, tensor and pipeline parallel degrees of a number of
// devices, times the modes of memory saving. n has (ln n)^2/2 ordered factorizations
// into three on average.
func splits(n int) float64 {
	const modes = 4 * 3 * 3 // ZeRO, recompute, offload
	ln := math.Log(float64(max(n, 2)))
	return modes * (1 + ln + ln*ln/2)
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
