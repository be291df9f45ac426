package datasets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadGavelPairs reads the co-locations of a throughput table as Gavel's simulator uses them: the
// consolidated values, for any placement. It leaves out pairs that were not measured or did not fit
// into memory, which the table has as [0, 0]. An invalid row is an error; the published tables have
// none.
func ReadGavelPairs(ctx context.Context, file string) ([]spec.Colocation, error) {
	var out []spec.Colocation
	for e, err := range consolidated(ctx, file, true) {
		if err != nil {
			return nil, err
		}
		c, err := e.colocation()
		if err != nil {
			return nil, err
		}
		if c.RateA > 0 && c.RateB > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

func (e *gavelEntry) readPair(v json.RawMessage) error {
	var rates []float64
	if err := json.Unmarshal(v, &rates); err != nil || len(rates) != 2 {
		return errors.New("is not a pair of numbers")
	}
	e.rates = [2]float64(rates)
	return nil
}

// colocation converts the entry of a pair.
func (e *gavelEntry) colocation() (c spec.Colocation, err error) {
	fail := func(column, value string, err error) (spec.Colocation, error) {
		return spec.Colocation{}, &RowError{File: e.file, Line: e.line, Column: column, Value: value, Err: err}
	}
	acc, err := catalog.Accelerator(e.worker)
	if err != nil {
		return fail("worker type", e.worker, err)
	}
	var devices [2]int
	for i, side := range []struct {
		job    string
		config *spec.Config
		rate   *float64
	}{{e.job, &c.A, &c.RateA}, {e.partner, &c.B, &c.RateB}} {
		g := gavelJobKey.FindStringSubmatch(side.job)
		if g == nil {
			return fail("job", side.job, errors.New("is not a pair of job type and device count"))
		}
		if devices[i], err = strconv.Atoi(g[2]); err != nil {
			return fail("job", side.job, err)
		}
		n, rate := float64(devices[i]), e.rates[i]
		if e.rateErr == nil && (rate < 0 || rate > 0 && n/rate > maxStepSec) {
			e.rateErr = errors.New("is negative or too small")
		}
		*side.config = GavelConfig(g[1], devices[i])
		side.config.Accelerator, side.config.Shape = acc, spec.Packed(devices[i], devices[i])
		if *side.rate = rate / n * float64(side.config.Plan.GlobalBatch()); e.rateErr == nil && math.IsInf(*side.rate, 0) {
			e.rateErr = errors.New("is too large")
		}
	}
	if e.rateErr != nil {
		return fail("throughput", e.written, e.rateErr)
	}
	if devices[0] != devices[1] {
		return fail("partner", e.partner, fmt.Errorf("is on %d devices beside one on %d", devices[1], devices[0]))
	}
	c.Source = "gavel/" + table.Stem(e.file)
	return c, nil
}
