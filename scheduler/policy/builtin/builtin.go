package builtin

import (
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
	"github.com/pacer-ml/pacer/scheduler/policy/elasticflow"
	"github.com/pacer-ml/pacer/scheduler/policy/fgd"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
	"github.com/pacer-ml/pacer/scheduler/policy/ones"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/policy/pacer"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
	"github.com/pacer-ml/pacer/scheduler/policy/pollux"
	"github.com/pacer-ml/pacer/scheduler/policy/rubick"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
	"github.com/pacer-ml/pacer/scheduler/policy/synergy"
	"github.com/pacer-ml/pacer/scheduler/policy/synth"
	"github.com/pacer-ml/pacer/scheduler/policy/themis"
)

// Policies is the table of built-in policies.
var Policies = policy.NewRegistry(
	order.FIFO, order.FIFOBackfill, order.EDF, order.SRTF, order.SRTFPredicted,
	order.LAS, order.Priority, order.Tiresias, order.Gittins,
	gavel.LAS, gavel.Waterfill, gavel.FTF, gavel.Makespan, gavel.FIFO, gavel.SLO,
	gavel.Cost, gavel.Throughput, gavel.Hierarchical,
	gavel.IsolatedShares, gavel.AlloX, gavel.Gandiva,
	paramserver.DRF, paramserver.Tetris,
	optimus.Info, optimus.OracleInfo,
	rubick.Info, rubick.InfoE, rubick.InfoR, rubick.InfoN,
	sia.Info, pollux.Info, elasticflow.Info, synergy.Info, fgd.Info, themis.Info, ones.Info, dl2.Info, pacer.Info, synth.Info,
)
