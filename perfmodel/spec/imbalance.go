package spec

import (
	"fmt"
	"strconv"
)

// WithImbalance returns m with that Imbalance, and with the figure behind the name, since measurements of m say little about
// it. 0 and 1 change nothing.
func (m Model) WithImbalance(factor float64) Model {
	if factor != 0 && factor != 1 {
		m.Imbalance = factor
		m.Name += " (imbalance=" + strconv.FormatFloat(factor, 'g', -1, 64) + ")"
	}
	return m
}

// Busiest returns the tokens that the experts of the busiest device of an expert parallel group receive under p, over the
// mean: imbalance, but no more than all tokens of the group. A device with all experts receives the mean.
func (p *Plan) Busiest(imbalance float64) float64 { return min(imbalance, float64(max(p.EP, 1))) }

// CheckImbalance returns an error for an Imbalance that m cannot have: it has no experts, or the busiest device would receive
// more than one copy of each token for each of its experts.
func (m *Model) CheckImbalance() error {
	x := m.Imbalance
	if x == 0 || x == 1 {
		return nil
	}
	if m.Experts == 0 {
		return fmt.Errorf("spec: model %s: imbalance=%g needs routed experts, and it has none: leave imbalance out", m.Name, x)
	}
	if most := float64(m.Experts) / float64(max(m.ExpertsPerToken, 1)); !(x >= 1 && x <= most) {
		return fmt.Errorf("spec: model %s: imbalance=%g is not in 1..%g, experts=%d over experts_per_token=%d; 1 is even", m.Name, x, most, m.Experts, m.ExpertsPerToken)
	}
	return nil
}
