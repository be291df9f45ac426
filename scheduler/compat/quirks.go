package compat

import (
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat/blox"
	"github.com/pacer-ml/pacer/scheduler/compat/dl2"
	"github.com/pacer-ml/pacer/scheduler/compat/gavel"
	"github.com/pacer-ml/pacer/scheduler/compat/pollux"
	"github.com/pacer-ml/pacer/scheduler/compat/sia"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy"
	gavelpolicy "github.com/pacer-ml/pacer/scheduler/policy/gavel"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/order"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
	polluxpolicy "github.com/pacer-ml/pacer/scheduler/policy/pollux"
	siapolicy "github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// Quirk is one difference of another simulator from Pacer.
type Quirk struct {
	Name    string
	Doc     string // one line: the other simulator's behaviour; else Pacer's
	install func(*Parts)
}

// edit changes the variant of type T in p.
func edit[T any](p *Parts, f func(*T)) { policy.EditVariant(&p.Variants, f) }

// quirks are all quirks, in the order of installation.
var quirks = []Quirk{
	{"ticks", "completions and arrivals are noticed at the next round, devices held until then; else when they happen",
		func(p *Parts) { blox.Ticks(&p.Rules) }},
	{"late-ends", "with ticks, a job completes when that is noticed; else when it happened",
		func(p *Parts) { blox.LateEnds(&p.Rules) }},
	{"whole-seconds", "epochs end and jobs complete at whole seconds, up to half a second early or late; else exactly",
		func(p *Parts) { pollux.WholeSeconds(&p.Rules) }},
	{"numbers-in-order", "jobs noticed in one round are ordered by the numbers that their IDs end in; else by submission",
		func(p *Parts) { blox.NumbersInOrder(&p.Rules) }},
	{"overshoot", "admission rule load ignores the demand of the job itself; else it counts",
		func(p *Parts) { edit(p, func(v *admission.Variant) { v.Overshoot = true }) }},
	{"epochs-left", "the remaining work of jobs with epochs counts from the end of the running epoch, and as 1 step in the last; else exactly",
		func(p *Parts) { pollux.EpochsLeft(&p.Rules) }},
	{"artifact-limits", "truth and belief goodput run ncf on one device only and yolov3 with at most 8 samples per device; else as measured",
		func(p *Parts) { p.Adjustment.Limits = append(p.Adjustment.Limits, pollux.Limits...) }},
	{"every-round", "optimus-oracle, tiresias and all policies for parameter servers decide anew in every round; else at events or when the order may change",
		func(p *Parts) {
			edit(p, func(v *order.Variant) { v.EveryRound = true })
			edit(p, func(v *optimus.Variant) { v.EveryRound = true })
			edit(p, func(v *paramserver.Variant) { v.EveryRound = true })
		}},
	{"queue-by-entry", "the queues of tiresias behind the first are ordered by when a job entered them; else by submission",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.QueueByEntry = true }) }},
	{"by-count", "tiresias and optimus-oracle decide by counts of devices which jobs run, without quanta, and give starting jobs any free devices; else they place jobs one by one where they are predicted to be fastest",
		func(p *Parts) {
			edit(p, func(v *order.Variant) { v.ByCount = true })
			edit(p, func(v *optimus.Variant) { v.AnyDevices = true })
		}},
	{"next-replica", "optimus-oracle compares with one more device, or one more replica or server; else with the best of all larger sizes per device, or per dominant share",
		func(p *Parts) { edit(p, func(v *optimus.Variant) { v.NextOnly = true }) }},
	{"start-is-restart", "pollux counts the first start of a job as a restart; else it does not",
		func(p *Parts) { edit(p, func(v *polluxpolicy.Variant) { v.StartIsRestart = true }) }},
	{"job-service", "las counts the seconds of a job, whatever its size; else device-seconds",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.Service = blox.JobService }) }},
	{"no-quantum", "las may preempt a job in any round; else it runs for a quantum first",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.NoQuantum = true }) }},
	{"tiresias-is-las", "tiresias is las, without queues; else it has queues",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.TiresiasIsLAS = true }) }},
	{"urgent", "a job that has once waited 3,600,000 s in a row goes before all others for good, and fifo preempts for it; the wait after a preemption counts from the next round; else no job is urgent",
		func(p *Parts) {
			edit(p, func(v *order.Variant) { v.UrgentAfter = blox.UrgentAfter })
			blox.Urgent(&p.Rules)
		}},
	{"evict-anyway", "jobs preempted for one that still does not fit stay preempted; else they continue",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.EvictAnyway = true }) }},
	{"stop-at-misfit", "a job that does not fit holds up all behind it, in every order; else only under fifo",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.StopAtMisfit = true }) }},
	{"anew", "a preempted job that fits after all is placed anew; else it keeps its devices",
		func(p *Parts) { edit(p, func(v *order.Variant) { v.PlaceAnew = true }) }},
	{"whole-demand", "placement scattered takes up to the whole demand from every node and wants the exact sum, so that 4 devices never fit on nodes with 3 and 2 free; else it takes what is missing",
		func(p *Parts) { p.placers = map[string]scheduler.Placer{"scattered": blox.WholeDemand()} }},
	{"barrier", "a round lasts until all its jobs have run for as long or are done; arrivals and completions are noticed then, and devices of completed jobs idle until then; else when they happen",
		func(p *Parts) { gavel.Barrier(&p.Rules) }},
	{"whole-steps", "with a barrier, a job makes the whole steps of all its devices that fit in a round, if one does, and waits; else it continues to the end of the round",
		func(p *Parts) { gavel.WholeSteps(&p.Rules) }},
	{"type-by-type", "fractions of time become rounds type by type, in the order of the cluster or shuffled for policies without speeds, by the time received since the fractions were computed; else all types together by decayed deficits, incumbents first, and free devices are leased between rounds",
		func(p *Parts) {
			edit(p, func(v *gavelpolicy.Variant) { gavel.TypeByType(v, &p.rounds) })
		}},
	{"throttle", "fractions are computed at most every 1920 s; else at every arrival and completion",
		func(p *Parts) { p.rounds.Least = gavel.Throttle }},
	{"newcomers-wait", "a job without fractions takes spare devices and does not run; else it runs",
		func(p *Parts) { p.rounds.NewcomersWait = true }},
	{"zeros-count", "types on which a job does not run count as if it did: gavel-fifo may give it one, on which it waits without holding up others, and its isolated share has a part in them; else they do not",
		func(p *Parts) { edit(p, func(v *gavelpolicy.Variant) { v.ZerosCount = true }) }},
	{"any-optimum", "of several optima of a linear program the one at which CVXOPT ends, between their middle and its starting point; else the one of greatest total, or the most even",
		func(p *Parts) { edit(p, func(v *gavelpolicy.Variant) { v.AnyOptimum = true }) }},
	{"summed-gain", "under gandiva two jobs that share devices separate if the parts of their speeds that they keep sum to less than 1 over all types; else if they sum to at most 1 on their type",
		func(p *Parts) { edit(p, gavel.SummedGain) }},
	{"slowdowns", "truth and belief goodput divide all speeds by 1.8 for cifar10, 1.5 for ncf, 1.2 for others; else as measured",
		func(p *Parts) { p.Adjustment.Slowdowns = sia.Slowdowns }},
	{"sia-limits", "truth and belief goodput run deepspeech2 with at most 57 samples per device on RTX2080Ti; else as measured",
		func(p *Parts) { p.Adjustment.Limits = append(p.Adjustment.Limits, sia.Limits...) }},
	{"own-models", "with truth goodput jobs choose their batch, and sia predicts their goodput, by models fitted to the steps they have made; else by the truth",
		func(p *Parts) { p.agents = &goodput.AgentRules{} }},
	{"owners-batch", "with own-models sia expects jobs to train at most their submitted batch; else up to the largest, as they do",
		func(p *Parts) {
			if p.agents != nil {
				p.agents.MaxBatch = sia.OwnersBatch
			}
		}},
	{"free-moves", "a job that keeps its shape moves between nodes of one type at no cost; else that is a restart",
		func(p *Parts) {
			edit(p, func(v *siapolicy.Variant) { v.FreeMoves = true })
			sia.FreeMoves(&p.Rules)
		}},
	{"rounded-costs", "sia rounds the cost of a configuration to 1/100; else it does not",
		func(p *Parts) { edit(p, func(v *siapolicy.Variant) { v.Cost = sia.RoundedCost }) }},
	{"assumed-starts", "sia assumes restarts of 30 s for cifar10 and 45 s for yolov3; else their start costs",
		func(p *Parts) { edit(p, func(v *siapolicy.Variant) { v.RestartTime = sia.AssumedStart }) }},
	{"young-move", "sia counts no restarts of jobs younger than a restart takes; else it does",
		func(p *Parts) { edit(p, func(v *siapolicy.Variant) { v.YoungMove = true }) }},
	{"least-loaded", "replicas and parameter servers go to the least loaded node, pairs together, up to 16 of each, and the first that does not fit there ends the decision; else to any node with room",
		func(p *Parts) { edit(p, func(v *paramserver.Variant) { v.LeastLoaded, v.Limit = true, dl2.Most }) }},
	{"to-the-most", "with parameter servers fifo, srtf and tetris give one of each as long as a job may have them, even if it becomes slower; else the fastest numbers",
		func(p *Parts) { edit(p, func(v *paramserver.Variant) { v.UpToLimit = true }) }},
	{"share-left", "with parameter servers srtf and tetris order by the remaining part of a job; else by its remaining time",
		func(p *Parts) { edit(p, func(v *paramserver.Variant) { v.Left = dl2.ShareLeft }) }},
	{"tetris-sign", "tetris prefers jobs with much remaining work; else with little",
		func(p *Parts) { edit(p, func(v *paramserver.Variant) { v.TetrisScore = dl2.TetrisSum }) }},
	{"raw-gain", "with parameter servers optimus-oracle compares the time saved; else that per dominant share",
		func(p *Parts) { edit(p, func(v *optimus.Variant) { v.RawGain = true }) }},
}

// All returns every quirk.
func All() []Quirk { return slices.Clone(quirks) }
