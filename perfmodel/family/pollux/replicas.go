package pollux

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
)

// ReplicaStep is the measured time of one micro-batch on data parallel replicas, including the reduction of its
// gradients.
type ReplicaStep struct {
	Nodes, Replicas, Micro int     // at least 1; Micro is samples on each replica
	StepSec                float64 // above SyncSec
	SyncSec                float64 // the part of StepSec that reduces gradients; at least 0
}

// ReplicaModel is Pollux's model of one job on one type of accelerator as the job's agent fits it during
// training: to measured steps, without configurations.
type ReplicaModel struct{ params vec }

// FitReplicas fits steps with the stopping rule of Sia's agents, as family sia does. No two steps may have the
// same nodes, replicas and micro-batch. The error wraps perfmodel.ErrTooFewPoints if there is no step.
func FitReplicas(steps []ReplicaStep) (*ReplicaModel, error) {
	if len(steps) == 0 {
		return nil, fmt.Errorf("sia: no measured step: %w", perfmodel.ErrTooFewPoints)
	}
	rows := make([]row, len(steps))
	for i, s := range steps {
		if s.Nodes < 1 || s.Replicas < 1 || s.Micro < 1 || !(s.SyncSec >= 0 && s.StepSec > s.SyncSec) || math.IsInf(s.StepSec, 0) {
			return nil, fmt.Errorf("sia: a step of %d samples on %d replicas over %d nodes that took %g s, %g of them to reduce gradients,"+
				" want counts of at least 1, and a finite step time above the reduction time", s.Micro, s.Replicas, s.Nodes, s.StepSec, s.SyncSec)
		}
		at := point{Nodes: s.Nodes, Replicas: s.Replicas, Micro: s.Micro, Accum: 1}
		rows[i] = row{point: at, seconds: s.StepSec, grad: s.StepSec - s.SyncSec}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(a.Micro, b.Micro))
	})
	v, err := fitRows(context.Background(), rows, siaFitter.stop)
	if err != nil {
		return nil, fmt.Errorf("sia: %w", err)
	}
	return &ReplicaModel{v}, nil
}

// Seconds returns the time of a step of accum micro-batches.
func (m *ReplicaModel) Seconds(nodes, replicas, micro, accum int) float64 {
	return point{Nodes: nodes, Replicas: replicas, Micro: micro, Accum: accum}.seconds(&m.params)
}
