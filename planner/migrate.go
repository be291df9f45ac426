package planner

import (
	"context"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Move is a running job and the configuration it may migrate to.
type Move struct {
	From, To         spec.Config
	RemainingSamples float64 // still to be trained, more than 0
	// Moved is true where To is on other devices. Otherwise the job keeps its first
	// devices, as many as both configurations have.
	Moved bool
	Costs MoveCosts
}

// MoveCosts are the rates and fixed costs of a migration. A zero field has the
// default documented with it.
type MoveCosts struct {
	// RestartSec is the time without training that does not depend on bytes:
	// processes, communicators, compilation. 0 = 30, the delay in the evaluation of
	// Pollux (Qiao et al., OSDI 2021, section 5.3).
	RestartSec float64
	// SaveBps and LoadBps are the rates of the whole job to and from shared
	// storage, bytes/s. 0 = 2e9 for each node it has.
	SaveBps, LoadBps float64
	// InPlace exchanges the state between the devices over their links, without a
	// checkpoint. Every device must be among the job's devices before the move or
	// receive its state from one of them.
	InPlace bool
}

// Migration is the cost and benefit of a Move.
type Migration struct {
	StateBytes  float64 // a checkpoint: weights and optimizer states of the whole model
	MovedBytes  float64 // of those, the bytes that devices must receive
	CostSec     float64 // without training: restart, save and load, or restart and the exchange in place
	RestartSec  float64
	SaveSec     float64 // writing a checkpoint, 0 in place
	LoadSec     float64 // reading it, 0 in place
	StaySec     float64 // to the end of the job as it is
	GoSec       float64 // to the end of the job with the move, CostSec included
	Worth       bool    // GoSec < StaySec
	Probability float64 // of GoSec < StaySec, by the intervals of both predictions; 0 or 1 without intervals
	// BreakEvenSamples is the remaining samples from which the move pays, +Inf when
	// To is not faster.
	BreakEvenSamples float64
}

// Bytes per parameter of a checkpoint: Adam's two moments and the master weights in
// fp32, and the 16-bit weights, if any (Rajbhandari et al., "ZeRO", SC 2020,
// section 3.1).
const (
	optimizerPerParameter = 12
	weightsPerParameter   = 2
)

const (
	defaultRestartSec = 30
	defaultStorageBps = 2e9 // of each node
)

// Migrate returns whether and when m pays:
//
//	stay = R / thr(From),  go = cost + R / thr(To)
//	cost = restart + state/save + state/load, or restart + exchange in place
//
//	R  remaining samples
//
// In place, the exchange takes as long as the device that receives most: the part
// of its new state that it does not hold yet. A device's part is the layers of its
// pipeline stage, split by tensor parallelism; ZeRO splits the optimizer states
// once more. Ranks are in the order tensor, context, data, pipeline. Experts are
// taken for the same share of every layer. A device holds the experts of its rank
// in its expert parallel group; the rest of the stage replicates them.
//
// The error wraps perfmodel.ErrNotCovered when a configuration cannot be
// predicted, and ErrInfeasible when one is illegal, To does not surely fit, or From
// surely does not: From runs, so an uncertain estimate does not refute it.
func (pl *Planner) Migrate(ctx context.Context, m Move) (Migration, error) {
	if err := m.check(); err != nil {
		return Migration{}, err
	}
	from, err := pl.runs(ctx, m.From, memory.Unsure)
	if err != nil {
		return Migration{}, fmt.Errorf("planner: move from %s: %w", m.From.Plan, err)
	}
	to, err := pl.runs(ctx, m.To, memory.Fits)
	if err != nil {
		return Migration{}, fmt.Errorf("planner: move to %s: %w", m.To.Plan, err)
	}
	out := m.Price()
	out.StaySec = m.RemainingSamples / from.Throughput
	out.GoSec = out.CostSec + m.RemainingSamples/to.Throughput
	out.Worth = out.GoSec < out.StaySec
	out.Probability = m.probability(out.CostSec, from, to, pl.shared(ctx, m))
	out.BreakEvenSamples = math.Inf(1)
	if per := 1/from.Throughput - 1/to.Throughput; per > 0 {
		out.BreakEvenSamples = out.CostSec / per
	}
	return out, nil
}

// runs predicts a configuration and checks that it is legal, and that it fits with at
// least the verdict least.
func (pl *Planner) runs(ctx context.Context, c spec.Config, least memory.Verdict) (spec.Prediction, error) {
	if err := c.Plan.Check(c.Model); err != nil {
		return spec.Prediction{}, fmt.Errorf("%w: %w", ErrInfeasible, err)
	}
	pred, err := pl.Predict(ctx, c)
	if err != nil {
		return pred, err
	}
	if e, err := pl.Memory(c); err == nil {
		limit := c.Accelerator.MemBytes * (1 - pl.o.Reserve)
		peak := memory.Breakdown{Overhead: pred.MemoryBytes, LogSD: e.Plan(c.Plan).LogSD}
		if b := memory.Budget(limit, peak.LogSD); b > 0 && pred.MemoryBytes > b && peak.Verdict(limit) != least {
			return pred, fmt.Errorf("%w: %s", ErrInfeasible, memory.Misfit(pred.MemoryBytes, b, limit))
		}
	}
	return pred, nil
}

func (m *Move) check() error {
	c := &m.Costs
	switch {
	case m.From.Model != m.To.Model:
		return fmt.Errorf("planner: a move from model %s to %s is none", m.From.Model.Name, m.To.Model.Name)
	case !(m.From.Model.Params() > 0):
		return fmt.Errorf("planner: model %s has no parameter count, so that its state is of unknown size", m.From.Model.Name)
	case !(m.RemainingSamples > 0) || math.IsInf(m.RemainingSamples, 0):
		return fmt.Errorf("planner: %g remaining samples, want more than 0", m.RemainingSamples)
	}
	for _, v := range []float64{c.RestartSec, c.SaveBps, c.LoadBps} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("planner: a restart of %g s, saving at %g and loading at %g bytes/s: want 0 (the default) or more", c.RestartSec, c.SaveBps, c.LoadBps)
		}
	}
	for _, p := range []spec.Plan{m.From.Plan, m.To.Plan} {
		if err := p.CheckBounds(); err != nil {
			return fmt.Errorf("planner: %w", err)
		}
	}
	return nil
}

func or(v, otherwise float64) float64 {
	if v > 0 {
		return v
	}
	return otherwise
}

// Price returns the bytes and seconds of the migration alone. A model without a
// parameter count has no state.
func (m *Move) Price() Migration {
	params := m.From.Model.Params()
	state := params * (optimizerPerParameter + weightsPerParameter)
	if !hasShortWeights(&m.From.Plan) {
		state = params * optimizerPerParameter
	}
	moved, busiest := m.exchange(params)
	out := Migration{StateBytes: state, MovedBytes: moved, RestartSec: or(m.Costs.RestartSec, defaultRestartSec)}
	if m.Costs.InPlace {
		out.CostSec = out.RestartSec + busiest/deviceBps(&m.To)
		return out
	}
	out.SaveSec = state / or(m.Costs.SaveBps, defaultStorageBps*nodesOf(&m.From))
	out.LoadSec = state / or(m.Costs.LoadBps, defaultStorageBps*nodesOf(&m.To))
	out.CostSec = out.RestartSec + out.SaveSec + out.LoadSec
	return out
}

func nodesOf(c *spec.Config) float64 { return float64(max(len(c.Shape.PerNode()), 1)) }

// deviceBps returns the bytes/s at which one device receives: its slowest link.
func deviceBps(c *spec.Config) float64 {
	bps := or(c.Link.IntraBps, or(c.Accelerator.ScaleUpBps, or(c.Accelerator.HostBps, 1e10)))
	if nodesOf(c) > 1 {
		bps = min(bps, or(c.Link.InterBps, 1.25e9)/float64(max(c.Shape.Most(), 1)))
	}
	return bps
}

// shared returns the covariance of the errors of ln(throughput) of both
// configurations, 0 where it is unknown.
func (pl *Planner) shared(ctx context.Context, m Move) float64 {
	p, ok := pl.p.(Correlated)
	if !ok {
		return 0
	}
	cov, err := p.LogCovariance(ctx, []spec.Config{m.From, m.To})
	if err != nil {
		return 0
	}
	return cov.At(0, 1)
}

// probability returns the probability of GoSec < StaySec for log-normal throughputs;
// shared is the covariance of their errors. The difference of the times is
// approximated as normal.
func (m *Move) probability(cost float64, from, to spec.Prediction, shared float64) float64 {
	stay, gone := m.RemainingSamples/from.Throughput, m.RemainingSamples/to.Throughput
	gain := stay - gone - cost
	a, b := stay*logSD(&from), gone*logSD(&to)
	variance := a*a + b*b - 2*stay*gone*shared
	return positive(gain, variance)
}

// normal90 is stats.Normal90 to full precision. The probabilities of moves and of ranks are computed with it.
const normal90 = 1.6448536269514722

// logSD returns the standard deviation of ln(throughput), 0 without a finite interval.
func logSD(p *spec.Prediction) float64 { return p.HalfWidth() / normal90 }

// exchange returns the bytes that all devices of To, and the one with most, must
// receive.
func (m *Move) exchange(params float64) (total, busiest float64) {
	from, to := m.From.Plan.Normal(), m.To.Plan.Normal()
	layers, routed := m.From.Model.Layers, routedShare(m.From.Model)
	kept := min(from.Devices(), to.Devices())
	if m.Moved {
		kept = 0
	}
	weights := 0.0
	if hasShortWeights(&to) {
		weights = weightsPerParameter * params
	}
	for r := range to.Devices() {
		opt, w := shardsOf(&to, layers, r, to.ZeRO >= 1), shardsOf(&to, layers, r, to.ZeRO == 3)
		bytes := optimizerPerParameter*params*opt.shared(&opt, routed) + weights*w.shared(&w, routed)
		if r < kept {
			had := shardsOf(&from, layers, r, from.ZeRO >= 1)
			bytes -= optimizerPerParameter * params * opt.shared(&had, routed)
			if hasShortWeights(&from) {
				had = shardsOf(&from, layers, r, from.ZeRO == 3)
				bytes -= weights * w.shared(&had, routed)
			}
		}
		total, busiest = total+max(bytes, 0), max(busiest, bytes)
	}
	return total, busiest
}

// hasShortWeights reports whether p keeps weights besides the optimizer's fp32
// master weights.
func hasShortWeights(p *spec.Plan) bool {
	return p.Precision != spec.FP32 && p.Precision != spec.TF32
}

// interval is a part of the whole, both ends in [0, 1].
type interval struct{ from, to float64 }

func slice(i, n int) interval { return interval{float64(i) / float64(n), float64(i+1) / float64(n)} }

func (a interval) shared(b interval) float64 { return max(min(a.to, b.to)-max(a.from, b.from), 0) }

// shardParts is the part of a model's parameters on one device: parts of the layers
// of its chunks.
type shardParts struct {
	layers        []interval
	dense, expert part
}

// part is an interval of the experts, an interval of the width that tensor
// parallelism splits, and an interval of what ZeRO splits.
type part struct{ experts, width, rest interval }

// shardsOf returns the parameters on rank r of a normal plan; layers is the model's
// number of layers, 0 = unknown, and sharded whether ZeRO splits them. A layer's
// experts are spread over max(EP, TP) neighbouring ranks, and each expert's width
// over TP/EP of these where EP divides TP: Megatron-LM's order of ranks, tensor
// before expert before data. ZeRO splits them over the ranks of its group with the
// same experts.
func shardsOf(p *spec.Plan, layers, r int, sharded bool) shardParts {
	inStage := p.TP * p.DP * p.CP
	rank, apart := r%inStage, max(p.EP, p.TP)
	whole, thick := interval{0, 1}, max(apart/p.EP, 1)
	out := shardParts{
		layers: chunksOf(p, layers, r/inStage),
		dense:  part{whole, slice(rank%p.TP, p.TP), whole},
		expert: part{slice(rank%apart/thick%p.EP, p.EP), slice(rank%apart%thick, thick), whole},
	}
	if sharded {
		out.dense.rest = slice(rank/p.TP%p.Shards(), p.Shards())
		alike := int(memory.ExpertSharding(p))
		out.expert.rest = slice(rank/apart%alike, alike)
	}
	return out
}

// routedShare returns the share of routed experts in a model's parameters, by its
// shape, in [0, 1].
func routedShare(m spec.Model) float64 {
	m.ParamCount = 0
	if all := m.Params(); all > 0 {
		return float64(m.MoELayers()*m.Experts) * m.ExpertParams() / all
	}
	return 0
}

// chunksOf returns the layers of a stage, as parts of all layers. Chunks pass
// through the stages in order; odd chunks of V-shaped schedules pass in reverse order.
func chunksOf(p *spec.Plan, layers, stage int) []interval {
	chunks, at := p.Chunks(), 0.0
	var out []interval
	for c := range chunks {
		for i := range p.PP {
			s := i
			if p.Schedule.VShaped() && c%2 == 1 {
				s = p.PP - 1 - i
			}
			share := 1 / float64(p.PP*chunks)
			if layers > 0 {
				share = float64(p.ChunkLayers(layers, s, c)) / float64(layers)
			}
			if s == stage {
				out = append(out, interval{at, at + share})
			}
			at += share
		}
	}
	return out
}

// shared returns the share of the parameters in both; routed is the share of the
// experts.
func (h *shardParts) shared(other *shardParts, routed float64) float64 {
	v := 0.0
	for _, x := range h.layers {
		for _, y := range other.layers {
			v += x.shared(y)
		}
	}
	return v * ((1-routed)*h.dense.shared(other.dense) + routed*h.expert.shared(other.expert))
}

func (a part) shared(b part) float64 {
	return a.experts.shared(b.experts) * a.width.shared(b.width) * a.rest.shared(b.rest)
}
