package query

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// Axes make a surface of a curve. The zero value is a curve.
type Axes struct {
	CPUs        []int     `json:"cpus,omitempty" maxItems:"1024" minimum:"1" maximum:"4096" doc:"CPU threads per device, a curve for each; not limited if absent."`
	HostGiB     []float64 `json:"host_gib,omitempty" maxItems:"1024" exclusiveMinimum:"0" maximum:"1048576" doc:"Host memory per device, a curve for each; that of the node if absent."`
	NetworkGbps []float64 `json:"network_gbps,omitempty" maxItems:"1024" exclusiveMinimum:"0" maximum:"1e9" doc:"Network of one node in Gbit/s, one direction, all NICs, a curve for each; in place of inter_node_gbps."`
}

// Bounds of a surface.
const (
	maxCPUs    = 4096    // per device
	maxHostGiB = 1 << 20 // per device
	maxNetwork = 1e9     // Gbit/s
)

// Given reports whether anything except devices and accelerators varies.
func (a *Axes) Given() bool { return len(a.CPUs)+len(a.HostGiB)+len(a.NetworkGbps) > 0 }

// Planner returns the axes in base units, ascending, each value once. interGbps is
// the network of the request, 0 = not given. Errors are *FieldError.
func (a *Axes) Planner(interGbps float64) (out planner.Axes, err error) {
	for _, v := range a.CPUs {
		if err := InRange("cpus", v, maxCPUs); err != nil {
			return out, err
		}
	}
	if err = above("host_gib", a.HostGiB, maxHostGiB); err != nil {
		return out, err
	}
	if err = above("network_gbps", a.NetworkGbps, maxNetwork); err != nil {
		return out, err
	}
	if len(a.NetworkGbps) > 0 && interGbps != 0 {
		return out, &FieldError{Field: "inter_node_gbps", Value: interGbps, Why: "and {network_gbps} both say how fast the network is: give one"}
	}
	out.CPUs = ascending(a.CPUs)
	for _, v := range ascending(a.HostGiB) {
		out.HostBytes = append(out.HostBytes, v*memory.GiB)
	}
	for _, v := range ascending(a.NetworkGbps) {
		out.InterBps = append(out.InterBps, v*1e9/8)
	}
	return out, nil
}

// above returns a *FieldError unless 0 < v <= most for all values.
func above(field string, values []float64, most float64) error {
	for _, v := range values {
		if !(v > 0 && v <= most) {
			return &FieldError{Field: field, Value: v, Why: fmt.Sprintf("is not above 0 and at most %.0f", most)}
		}
	}
	return nil
}

func ascending[T int | float64](values []T) []T {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

// CheckPoints reports a surface, on so many accelerators and up to so many
// devices, of more than most points.
func (a *Axes) CheckPoints(accelerators, devices, most int) error {
	points := float64(devices) * float64(accelerators)
	for _, n := range []int{len(a.CPUs), len(a.HostGiB), len(a.NetworkGbps)} {
		points *= float64(max(n, 1))
	}
	if points > float64(most) && (a.Given() || accelerators > 1) {
		return &FieldError{Field: "max_devices", Value: devices, Why: fmt.Sprintf("makes %.0f points, which are more than %d: fewer values, or fewer devices", points, most)}
	}
	return nil
}

// threads is the end of the name of a CPU as an accelerator, after its comma.
var threads = regexp.MustCompile(`^ \d+ threads?$`)

// AcceleratorList splits "h100,a100-80gb", and leaves "CPU X, 2 threads" whole.
// A name that is missing beside a comma is a *FieldError.
func AcceleratorList(s string) (names []string, err error) {
	for i, part := range strings.Split(s, ",") {
		if i > 0 && threads.MatchString(part) {
			names[len(names)-1] += "," + part
			continue
		}
		names = append(names, strings.TrimSpace(part))
	}
	if slices.Contains(names, "") && len(names) > 1 {
		return nil, &FieldError{Field: "accelerator", Value: s, Why: "has a name missing beside a comma"}
	}
	return names, nil
}

// SurfaceLine is the request of one accelerator of a surface, and its planner.
type SurfaceLine struct {
	planner.Request
	Planner *planner.Planner
}

// SurfaceRowSet is the surface of several accelerators.
type SurfaceRowSet struct {
	Rows  []CurveRow
	IsNew []bool   // see SurfaceRows
	Names []string // of the accelerators on which anything fits
	None  []error  // of the others; they wrap planner.ErrInfeasible
}

// Surfaces answers lines. If nothing fits on any accelerator, it returns the reasons
// as the error.
func Surfaces(ctx context.Context, lines []SurfaceLine, axes planner.Axes) (SurfaceRowSet, error) {
	var out SurfaceRowSet
	for _, l := range lines {
		s, err := l.Planner.Surface(ctx, l.Request, axes)
		if errors.Is(err, planner.ErrInfeasible) {
			out.None = append(out.None, err)
			continue
		}
		if err != nil {
			return SurfaceRowSet{}, err
		}
		rows, isNew := SurfaceRows(s, axes)
		out.Rows, out.IsNew, out.Names = append(out.Rows, rows...), append(out.IsNew, isNew...), append(out.Names, l.Accelerator.Name)
	}
	if len(out.Rows) == 0 {
		return SurfaceRowSet{}, errors.Join(out.None...)
	}
	return out, nil
}
