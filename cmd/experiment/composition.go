package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/compose"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// composition is the parts of a scheduler other than its policy.
type composition struct {
	admission, placement string
	round                time.Duration
	mode                 compat.Mode // zero = Pacer's own semantics
	even                 bool        // jobs have the same number of devices on each of their nodes
}

// readScheduler fills in the options that the file of o.Scheduler gives.
func (o *Options) readScheduler() error {
	if o.Scheduler == "" {
		return nil
	}
	for _, s := range settings {
		if slices.Contains(compose.Keys, s.name) && *s.value(o) != "" {
			return invalid("scheduler", o.Scheduler, "and {%s} conflict: the file describes the whole scheduler", fieldName(s.name))
		}
	}
	values, err := readSchedulerFile(o.Scheduler)
	if err != nil {
		return err
	}
	return o.setAll(values)
}

// readSchedulerFile returns the options that the file of a scheduler stands for.
func readSchedulerFile(path string) (map[string]string, error) {
	text, err := query.ReadFile("scheduler", path, maxStudyFile)
	if err != nil {
		return nil, err
	}
	values, err := compose.Read(path, text)
	if err != nil {
		return nil, invalidBecause("scheduler", path, err)
	}
	return values, nil
}

// maxStudyFile bounds the files of studies and schedulers, in bytes.
const maxStudyFile = 1 << 20

// composition reads Compat, Admission, Placement and Round. A mode gives the defaults
// of the others.
func (o *Options) composition() (composition, error) {
	out := composition{admission: o.Admission, placement: o.Placement}
	if o.Compat != "" {
		var err error
		if out.mode, err = compat.Parse(o.Compat); err != nil {
			return out, invalidBecause("compat", o.Compat, fmt.Errorf("{compat}: %w", err))
		}
	}
	out.placement, out.round = cmp.Or(out.placement, out.mode.Placement), out.mode.Round
	if o.Round != "" {
		out.round = max(time.Duration(number(o.Round, 0)*float64(time.Second)), 1)
	}
	if _, err := admission.Lookup(out.admission); err != nil {
		return out, invalidBecause("admission", out.admission, err)
	}
	if _, err := place.Lookup(out.placement); err != nil {
		return out, invalidBecause("placement", out.placement, err)
	}
	return out, nil
}

// supports checks that the mode has the policies.
func (o composition) supports(policies []policy.Spec) error {
	for _, p := range policies {
		if o.mode.Name != "" && !slices.Contains(o.mode.Policies, p.Name) {
			return invalidBecause("policy", p.Name, fmt.Errorf("{compat} %s has no policy %q, there are: %s", o.mode.Name, p.Name, strings.Join(o.mode.Policies, ", ")))
		}
	}
	return nil
}

// config returns a run with these parts, and completes the dependencies of its policy.
func (o composition) config(d *policy.Deps) (sim.Config, error) {
	parts := o.mode.Parts()
	c := sim.Config{Round: o.round, Rules: parts.Rules}
	d.Variants = parts.Variants
	var err error
	if d.Placer, err = parts.Placer(o.placement); err != nil {
		return c, err
	}
	if o.even {
		d.Placer = place.Even(d.Placer)
		if d.Oracle != nil {
			d.Oracle = place.EvenOracle{Oracle: d.Oracle}
		}
	}
	c.Admission, err = admission.New(o.admission, *d)
	return c, err
}

// names returns the names of the parts, for reports.
func (o composition) names() (admission, placement, round, mode string) {
	round = "none: when something happens"
	if o.round > 0 {
		round = strconv.FormatFloat(o.round.Seconds(), 'f', -1, 64) + " s"
	}
	return cmp.Or(o.admission, "accept-all"), cmp.Or(o.placement, "packed"), round, cmp.Or(o.mode.Name, "none")
}
