package synthetic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Set sets the options in text, key=value separated by commas:
//
//	jobs=1000               number of jobs
//	per-hour=20             mean arrivals
//	arrivals=poisson        or bursty (DefaultBurst), diurnal (DefaultHours), or
//	                        both: bursty+diurnal
//	sizes=1x0.7+8x0.3       devices x share; or blox (BloxSizes)
//	median-s=1800           of log-normal run times
//	sigma=1.2               of their logarithm
//	max-s=86400             longest run time
//	tenants=4               number of tenants
//	deadline=0.5-1.5        deadlines after submission, in run times
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
		given[key] = true
		if key == "load" { // last: it depends on the sizes and run times
			load, loaded = value, true
			continue
		}
		if err := o.set(key, value); err != nil {
			return fmt.Errorf("synthetic: %s: %w", item, err)
		}
	}
	if loaded {
		return o.setLoad(load)
	}
	return o.Validate()
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
	}
	switch {
	case numbers[key] != nil:
		return named.Parse(value, numbers[key])
	case key == "arrivals":
		return o.setArrivals(value)
	case key == "deadline":
		lo, hi, _ := strings.Cut(value, "-")
		if named.Parse(lo, &o.Deadlines.Min) != nil || named.Parse(hi, &o.Deadlines.Max) != nil {
			return fmt.Errorf("%q is not MIN-MAX", value)
		}
		return nil
	case key == "sizes":
		o.Sizes, err = parseSizes(value)
		return err
	}
	return fmt.Errorf("want one of jobs, per-hour, arrivals, sizes, median-s, sigma, max-s, tenants, deadline, load, fit, models")
}

func (o *Options) setArrivals(value string) error {
	o.Burst, o.Hours = Burst{}, nil
	for _, kind := range strings.Split(value, "+") {
		switch kind {
		case "poisson":
		case "bursty":
			o.Burst = DefaultBurst
		case "diurnal":
			o.Hours = DefaultHours()
		default:
			return fmt.Errorf("%q is not poisson, bursty or diurnal", kind)
		}
	}
	return nil
}

func parseSizes(value string) ([]Size, error) {
	if value == "blox" {
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
