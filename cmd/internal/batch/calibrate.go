package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadMeasured returns the rows of the file Calibrate of o that can be fitted. Others are reported to Log; the
// error is then nil and partial is true if a row could not be read or contradicts itself.
func ReadMeasured(ctx context.Context, o Options) (rows []spec.Measurement, partial bool, err error) {
	r := newRun(ctx, o)
	defer r.log.finish()
	rows, err = r.readCalibration()
	return rows, r.failed, err
}

// calibrate returns fam, calibrated to the measured rows.
func (r *Run) calibrate(fam perfmodel.Family) (perfmodel.Predictor, error) {
	if fam.Fit == nil {
		return nil, fail.Usagef("predict: family %s is not fitted, so --calibrate changes nothing; leave it out", fam.Name)
	}
	rows, err := r.readCalibration()
	if err != nil {
		return nil, err
	}
	r.seen = calibratedTo(rows)
	if r.memory, err = memory.Condition(r.ctx, r.memory, rows); err != nil {
		return nil, err
	}
	if fam.Condition != nil {
		fitted, err := fam.Condition(r.ctx, rows)
		if d, ok := fitted.(perfmodel.Doubter); ok && err == nil {
			for _, o := range d.Outliers() {
				r.log.report(rowContradicted, fmt.Sprintf("%s: %s: was it measured as recorded?", o.Row.Origin, o))
			}
		}
		if d, ok := fitted.(perfmodel.Drifter); ok && err == nil {
			r.drifts = d.Drifts()
			for _, of := range r.drifts {
				r.log.note(of.String())
			}
		}
		return fitted, err
	}
	rows = slices.DeleteFunc(rows, func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
	return fitEach(r.ctx, fam, rows)
}

// readCalibration returns the rows to calibrate to and reports all others. Rows that cannot be
// read or contradict themselves change the exit code, too.
func (r *Run) readCalibration() ([]spec.Measurement, error) {
	in, name, err := r.Open(r.Calibrate)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	judge, err := query.Analytic()
	if err != nil {
		return nil, err
	}
	var out []spec.Measurement
	var where []string // of each of out
	total := 0
	for row, err := range datasets.PublishedRows(r.ctx, name, in, beside(in, name), true) {
		total++
		var bad *datasets.RowError
		switch {
		case errors.As(err, &bad):
			r.failed = true
			r.log.report(rowLeftOut, err.Error())
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", r.Verb, err)
		}
		r.log.header(name, &row)
		m := row.Measurement
		r.Link.Apply(&m.Config.Link)
		if err := r.parts.complete(r.ctx, &m.Config.Accelerator); err != nil {
			r.failed = true
			r.log.report(rowLeftOut, fmt.Sprintf("%s:%d: %s: %s", name, row.Line, row.ID, err))
			continue
		}
		row.Measurement = m
		reason, fault := unfit(r.ctx, judge, &row)
		if reason != "" {
			r.failed = r.failed || fault
			r.log.report(rowLeftOut, fmt.Sprintf("%s:%d: %s: %s", name, row.Line, row.ID, reason))
			continue
		}
		m.Doubt = "" // the rows to predict have the same assumptions
		delete(m.Env, spec.EnvWrongConfig)
		out = append(out, m)
		where = append(where, fmt.Sprintf("%s:%d: %s", name, row.Line, row.ID))
	}
	kept, described := out[:0], modelsOf(out, false)
	for i := range out {
		c := &out[i].Config
		if onlyNamed(c.Model) && described[c.Model.Name] {
			r.failed = true
			r.log.report(rowLeftOut, where[i]+": "+unlikeText(c.Model.Name))
			continue
		}
		if what := strange(c); what != "" {
			r.log.report(rowTakenAsIs, where[i]+": "+what)
		}
		kept = append(kept, out[i])
	}
	out = kept
	if total == 0 {
		return nil, fmt.Errorf("%s: %s has no rows below its header", r.Verb, name)
	}
	r.log.bar.Println(fmt.Sprintf("%s: calibrating to %d of %d rows of %s", r.Verb, len(out), total, name))
	return out, nil
}

// unfit returns the reason why a row is not used for calibration, "" if it is used. fault
// reports a mistake in the row.
func unfit(ctx context.Context, judge perfmodel.Predictor, row *datasets.Row) (reason string, fault bool) {
	m := &row.Measurement
	switch {
	case len(row.Against) > 0:
		return strings.Join(row.Against, "; "), true
	case m.Outcome != spec.OK:
		return "it ran out of memory", false
	case len(row.Doubts) > 0:
		return strings.Join(row.Doubts, "; "), false
	}
	if m.MedianStepSec() == 0 { // of memory alone
		return "", false
	}
	return implausible(ctx, judge, m)
}

// wildFactor is the largest ratio of a measured step time to the analytic prediction. Without
// measurements of a job the prediction is within a factor of three; a wrong unit is off by a
// thousand, or by the tokens of a sample.
const wildFactor = 100

// implausible reports a step time that seems to be in another unit.
func implausible(ctx context.Context, judge perfmodel.Predictor, m *spec.Measurement) (reason string, fault bool) {
	pred, err := judge.Predict(ctx, m.Config)
	if err != nil {
		return "", false
	}
	sec, _, _ := pred.StepSec(m.Config.Plan.GlobalBatch())
	if got := m.MedianStepSec(); got > sec*wildFactor || got*wildFactor < sec {
		return fmt.Sprintf("a step of %.4g s, where about %.4g s is expected: is it in another unit?", got, sec), true
	}
	return "", false
}

// fittedKeys predicts each (model, accelerator) by a model of its own.
type fittedKeys struct {
	family string
	models map[spec.Key]perfmodel.Fitted
	errs   map[spec.Key]error // of keys that could not be fitted
}

// fitEach fits fam to every (model, accelerator) of rows.
func fitEach(ctx context.Context, fam perfmodel.Family, rows []spec.Measurement) (*fittedKeys, error) {
	out := &fittedKeys{family: fam.Name, models: map[spec.Key]perfmodel.Fitted{}, errs: map[spec.Key]error{}}
	byKey := perfmodel.GroupByKey(rows)
	for _, key := range slices.SortedFunc(maps.Keys(byKey), perfmodel.CompareKeys) {
		fitted, _, err := fam.Fit(ctx, perfmodel.Rows(perfmodel.MergeRepeats(byKey[key])))
		switch {
		case err == nil:
			out.models[key] = fitted
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			out.errs[key] = err
		}
	}
	return out, nil
}

// Predict implements perfmodel.Predictor.
func (f *fittedKeys) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	key := c.Key()
	if m := f.models[key]; m != nil {
		return m.Predict(ctx, c)
	}
	if err := f.errs[key]; err != nil {
		return spec.Prediction{}, fmt.Errorf("%w: %w", err, perfmodel.ErrNotCovered)
	}
	return spec.Prediction{}, fmt.Errorf("%s: no row of %s to calibrate to: %w", f.family, key, perfmodel.ErrNotCovered)
}
