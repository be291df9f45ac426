package synthetic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Set sets the options in text, key=value separated by commas:
//
//	jobs=1000               number of jobs
//	per-hour=20             mean arrivals
//	arrivals=poisson        or bursty (DefaultBurst), diurnal (DefaultHours), both:
//	                        bursty+diurnal, or once: all at time 0
//	sizes=1x0.7+8x0.3       devices x share; or mixed (DefaultSizes), small
//	                        (SmallSizes), large (LargeSizes), blox (BloxSizes)
//	durations=log-normal    or pareto, uniform
//	median-s=1800           of the run times
//	sigma=1.2               of the logarithm of log-normal ones
//	alpha=1.5               tail exponent of Pareto ones
//	max-s=86400             longest run time
//	guaranteed=0.2          share of guaranteed jobs
//	tenants=4               number of tenants
//	deadline=0.5-1.5        deadlines after submission, in run times
//	time-scale=10           factor on all times and steps
//	load=0.9x512            offered load x devices, instead of per-hour: see SetLoad
func (o *Options) Set(text string) error {
	load, loaded := "", false
	given := map[string]bool{}
	for _, item := range strings.Split(text, ",") {
		if item == "" {
			continue
		}
		key, value, _ := strings.Cut(item, "=")
		if given[key] {
			return fmt.Errorf("synthetic: %s is given twice", key)
		}
		if given[key] = true; given["load"] && given["per-hour"] {
			return fmt.Errorf("synthetic: load and per-hour both say how many jobs arrive: give one of them")
		}
		if key == "load" { // last: it depends on the sizes and run times
			load, loaded = value, true
			continue
		}
		if err := o.set(key, value); err != nil {
			return fmt.Errorf("synthetic: %s: %w", item, err)
		}
	}
	if o.Seconds != nil {
		o.scaleSeconds(given["median-s"])
	}
	if loaded {
		return o.setLoad(load)
	}
	return o.Validate()
}

// scaleSeconds gives resampled run times the median MedianSec, if that was given, and the maximum
// MaxSec.
func (o *Options) scaleSeconds(median bool) {
	factor, most := 1.0, o.withDefaults().MaxSec
	if middle := stats.Median(o.Seconds); median && middle > 0 {
		factor = o.MedianSec / middle
	}
	scaled := slices.Clone(o.Seconds)
	for i := range scaled {
		scaled[i] = min(max(scaled[i]*factor, 1), most)
	}
	o.Seconds = scaled
}

// setLoad parses LOADxDEVICES.
func (o *Options) setLoad(text string) error {
	x, n, _ := strings.Cut(text, "x")
	load, err1 := strconv.ParseFloat(x, 64)
	devices, err2 := strconv.ParseFloat(n, 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("synthetic: load=%s is not LOADxDEVICES", text)
	}
	return o.SetLoad(load, devices)
}

func (o *Options) set(key, value string) (err error) {
	numbers := map[string]any{
		"jobs": &o.Jobs, "tenants": &o.Tenants, "per-hour": &o.PerHour, "median-s": &o.MedianSec, "sigma": &o.Sigma, "max-s": &o.MaxSec,
		"alpha": &o.Alpha, "guaranteed": &o.GuaranteedShare, "time-scale": &o.TimeScale,
	}
	switch {
	case numbers[key] != nil:
		zero, _ := strconv.ParseFloat(value, 64)
		if err := named.Parse(value, numbers[key]); err != nil || zero != 0 || key == "tenants" || key == "guaranteed" {
			return err
		}
		return fmt.Errorf("must be positive; the default applies without it")
	case key == "arrivals":
		return o.setArrivals(value)
	case key == "deadline":
		lo, hi, _ := strings.Cut(value, "-")
		if named.Parse(lo, &o.Deadlines.Min) != nil || named.Parse(hi, &o.Deadlines.Max) != nil || o.Deadlines.Max == 0 {
			return fmt.Errorf("%q is not MIN-MAX", value)
		}
		return nil
	case key == "sizes":
		o.Sizes, err = parseSizes(value)
		return err
	case key == "durations":
		o.Durations = Durations(value)
		return nil
	}
	return fmt.Errorf("want one of jobs, per-hour, arrivals, sizes, durations, median-s, sigma, alpha, max-s, guaranteed, tenants, deadline, time-scale, load, fit, models, resample")
}

func (o *Options) setArrivals(value string) error {
	o.Burst, o.Hours, o.AtOnce = Burst{}, nil, value == "once"
	if o.AtOnce {
		return nil
	}
	for _, kind := range strings.Split(value, "+") {
		switch kind {
		case "poisson":
		case "bursty":
			o.Burst = DefaultBurst
		case "diurnal":
			o.Hours = DefaultHours()
		default:
			return fmt.Errorf("%q is not poisson, bursty, diurnal or once", kind)
		}
	}
	return nil
}

func parseSizes(value string) ([]Size, error) {
	switch value {
	case "mixed":
		return DefaultSizes, nil
	case "small":
		return SmallSizes, nil
	case "large":
		return LargeSizes, nil
	case "blox":
		return BloxSizes(), nil
	}
	var out []Size
	for _, part := range strings.Split(value, "+") {
		n, share, _ := strings.Cut(part, "x")
		devices, err1 := strconv.Atoi(n)
		weight, err2 := strconv.ParseFloat(share, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%q is not DEVICESxSHARE", part)
		}
		out = append(out, Size{Devices: devices, Share: weight})
	}
	return out, nil
}
