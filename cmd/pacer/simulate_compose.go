package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/compose"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// composition is what schedulers are put together from, but for the policy.
type composition struct {
	admission, placement string
	round                time.Duration
	mode                 compat.Mode // the zero Mode is Pacer's own semantics
}

// readScheduler sets the flags of c to what the file of --scheduler says.
func readScheduler(c *cli.Context) error {
	path := c.String("scheduler")
	if path == "" {
		return nil
	}
	for _, name := range compose.Keys {
		if c.IsSet(name) {
			return usagef("simulate: --scheduler %s and --%s: the file says all there is of a scheduler", path, name)
		}
	}
	settings, err := readSchedulerFile(path)
	if err != nil {
		return err
	}
	for name, value := range settings {
		if err := c.Set(name, value); err != nil {
			return usagef("simulate: --scheduler %s: %w", path, err)
		}
	}
	return nil
}

// readSchedulerFile returns the flags that the file of a scheduler stands for.
func readSchedulerFile(path string) (map[string]string, error) {
	text, err := readSmall(path, maxStudyFile)
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	settings, err := compose.Read(path, text)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return settings, nil
}

// readComposition reads --compat, --admission, --placement and --round. What a
// mode brings along is what the others are without being given.
func readComposition(c *cli.Context) (composition, error) {
	out := composition{admission: c.String("admission"), placement: c.String("placement")}
	if text := c.String("compat"); text != "" {
		var err error
		if out.mode, err = compat.Parse(text); err != nil {
			return out, usagef("simulate: --compat: %w", err)
		}
	}
	out.placement, out.round = cmp.Or(out.placement, out.mode.Placement), out.mode.Round
	if text := c.String("round"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0 && v < 1e9) {
			return out, usagef("simulate: --round %q is not a number of seconds above 0", text)
		}
		out.round = max(time.Duration(v*float64(time.Second)), 1)
	}
	if _, err := policy.LookupAdmission(out.admission); err != nil {
		return out, usagef("simulate: %w", err)
	}
	if _, err := place.Lookup(out.placement); err != nil {
		return out, usagef("simulate: %w", err)
	}
	return out, nil
}

// has checks that the mode knows the policies.
func (o composition) has(policies []policy.Spec) error {
	for _, p := range policies {
		if o.mode.Name != "" && !slices.Contains(o.mode.Policies, p.Name) {
			return usagef("simulate: --compat %s has no policy %q, there are: %s", o.mode.Name, p.Name, strings.Join(o.mode.Policies, ", "))
		}
	}
	return nil
}

// config puts the parts around a policy to come together, and completes what that is
// made of.
func (o composition) config(d *policy.Deps) (sim.Config, error) {
	c := sim.Config{Round: o.round, Quirks: o.mode.Quirks}
	d.Quirks = o.mode.Quirks
	var err error
	if d.Placer, err = place.New(o.placement, o.mode.Quirks); err != nil {
		return c, err
	}
	c.Admission, err = policy.NewAdmission(o.admission, *d)
	return c, err
}

// words says what is composed, for reports.
func (o composition) words() (admission, placement, round, mode string) {
	round = "none: when something happens"
	if o.round > 0 {
		round = strconv.FormatFloat(o.round.Seconds(), 'f', -1, 64) + " s"
	}
	return cmp.Or(o.admission, "accept-all"), cmp.Or(o.placement, "packed"), round, cmp.Or(o.mode.Name, "none")
}
