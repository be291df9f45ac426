package compat

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat/gavel"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Parts are the parts of a run that quirks replace. The zero value is Pacer's own.
type Parts struct {
	Rules      sim.Rules          // rules of the engine
	Variants   policy.Variants    // variants of policies
	Adjustment goodput.Adjustment // changes of Pollux' and Sia's tables
	placers    map[string]scheduler.Placer
	rounds     gavel.Rounds        // used by Variants
	agents     *goodput.AgentRules // nil = policies have the true goodput
}

// Placer returns the placer of that name, "" meaning packed.
func (p *Parts) Placer(name string) (scheduler.Placer, error) {
	if own, ok := p.placers[name]; ok {
		return own, nil
	}
	return place.Lookup(name)
}

// OwnModels reports whether jobs fit models to their own steps. Then jobs choose their
// batch, and policies decide, by these models.
func (p *Parts) OwnModels() bool { return p.agents != nil }

// Agents returns the jobs of a run on t that fit their own models; nil if they do not.
func (p *Parts) Agents(t *goodput.Tables, c spec.Cluster) *goodput.Agents {
	if p.agents == nil {
		return nil
	}
	rules := *p.agents
	rules.RoundSec = p.Rules.RoundSec
	return goodput.NewAgents(t, c, rules)
}
