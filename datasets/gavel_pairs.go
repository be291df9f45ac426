package datasets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadGavelPairs reads what a throughput table of Gavel says of jobs that share
// devices, as its simulator uses it: the consolidated values, whatever servers the
// devices are on. Pairs that were not measured, or did not fit into memory, of
// which the table says [0, 0], are left out. Rows that cannot be read, none in the
// published tables, are an error here.
func ReadGavelPairs(ctx context.Context, file string) ([]spec.Colocation, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("datasets: %w", err)
	}
	var out []spec.Colocation
	for e, err := range walkGavel(data, filepath.Base(file), true) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(e.worker, "_unconsolidated") {
			continue
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

// colocation turns the entry of a pair into what was measured.
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
		*side.config = gavelConfig(g[1], devices[i])
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
	c.Source = "gavel/" + stem(e.file)
	return c, nil
}
