package spec

import "testing"

func TestQuarantine(t *testing.T) {
	for _, outcome := range []Outcome{OK, OOM} {
		for _, doubt := range []string{"", "half the batch", "a; besides: b"} {
			m := Measurement{Outcome: outcome, Doubt: doubt}
			if q, why := m.Unquarantine(); m.Quarantined() || q.Doubt != doubt || why != "" {
				t.Errorf("doubt %q: quarantined for %q", doubt, why)
			}
			q := m.Quarantine("odd: really")
			if !q.Quarantined() || q.DoubtReason() == "" {
				t.Errorf("doubt %q: %q is not quarantined", doubt, q.Doubt)
			}
			if back, why := q.Unquarantine(); back.Doubt != doubt || why != "odd: really" {
				t.Errorf("doubt %q came back as %q, with reason %q", doubt, back.Doubt, why)
			}
		}
	}
	if m := (Measurement{Doubt: "b"}).Quarantine("a"); m.Doubt != "quarantined: a; besides: b" {
		t.Errorf("doubt %q", m.Doubt)
	}
}
