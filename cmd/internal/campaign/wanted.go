package campaign

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// wantedPlans reads the plans of a file written by pacer plan --output json.
func wantedPlans(path string) ([]profiler.Wanted, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("profile: --for: %w", err)
	}
	var file query.Plans
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fail.Usagef("profile: --for: %s: %w: want the output of pacer plan --output json", path, err)
	}
	if len(file.Plans) == 0 {
		return nil, fail.Usagef("profile: --for: %s has no plans: want the output of pacer plan --output json", path)
	}
	out := make([]profiler.Wanted, len(file.Plans))
	for i, row := range file.Plans {
		if out[i].Plan, err = spec.ParsePlan(row.Plan); err == nil {
			out[i].Shape, err = spec.ParseShape(row.Shape)
		}
		if err != nil {
			return nil, fail.Usagef("profile: --for: %s: plans[%d]: %w", path, i, err)
		}
		if n, m := out[i].Plan.Devices(), out[i].Shape.Total(); n != m {
			return nil, fail.Usagef("profile: --for: %s: plans[%d]: plan %q is for %d devices and shape %q has %d", path, i, row.Plan, n, row.Shape, m)
		}
	}
	return out, nil
}
