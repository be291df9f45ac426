package spec

import "strings"

// The Doubt of a quarantined row is quarantined, the reason, and, if its source doubts the row too, besides and that
// doubt.
const (
	quarantined = "quarantined: "
	besides     = "; besides: "
)

// Quarantine returns m with a Doubt that says that m is quarantined and why. It keeps the doubt of the source. Such a
// row of any outcome is neither fitted, scored, looked up nor replayed. CheckReason must accept the reason.
func (m Measurement) Quarantine(reason string) Measurement {
	doubt := quarantined + reason
	if m.Doubt != "" {
		doubt += besides + m.Doubt
	}
	m.Doubt = doubt
	return m
}

// Quarantined reports whether m is the result of Quarantine.
func (m Measurement) Quarantined() bool { return strings.HasPrefix(m.Doubt, quarantined) }

// Unquarantine reverses Quarantine. It returns m and "" if m is not quarantined; the reason of one that is may be "", too.
func (m Measurement) Unquarantine() (_ Measurement, reason string) {
	rest, ok := strings.CutPrefix(m.Doubt, quarantined)
	if !ok {
		return m, ""
	}
	reason, m.Doubt, _ = strings.Cut(rest, besides)
	return m, reason
}
