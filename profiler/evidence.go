package profiler

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// misled returns why the next point is chosen by distance, "" if it is chosen by gain. The errors are those of the
// predictions that were made before each point was measured, of all models together.
func (r *run) misled() string {
	w := &r.watch
	if !w.Misled {
		return ""
	}
	return fmt.Sprintf("intervals did not predict the errors of %d points (Bayes factor %.3g)", w.Errors, w.Factor)
}

// errorOf returns the error of the prediction that is stored with a point. ok is false if there is none, or if the row
// is not usable.
func errorOf(m *spec.Measurement) (e spacefill.Error, ok bool) {
	sec, half := envFloat(m, EnvPredicted), envFloat(m, EnvPredictedHalf)
	if !(sec > 0 && half > 0) || !perfmodel.UsableOrAlone(*m) {
		return e, false
	}
	return spacefill.Error{Off: math.Log(m.MedianStepSec() / sec), HalfWidth: half}, true
}

// envFloat returns a finite number of Env, 0 if there is none.
func envFloat(m *spec.Measurement, key string) float64 {
	v, err := strconv.ParseFloat(m.Env[key], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// predicted adds the prediction of step to the Env of its measurement, so that a continued run has the same errors.
func (r *run) predicted(env map[string]string, step *Step) {
	k := r.byKey[step.Point.Config.Key()]
	if sec := r.stepSec(step.Point.Config); k.fitted && sec > 0 && step.HalfWidth > 0 {
		env[EnvPredicted] = strconv.FormatFloat(sec, 'g', -1, 64)
		env[EnvPredictedHalf] = strconv.FormatFloat(step.HalfWidth, 'g', -1, 64)
	}
}

// distances returns the distance of each point to the nearest measured one, including the rows of other runs that are
// used in fits.
func (r *run) distances() spacefill.Nearest {
	if r.space == nil {
		configs := make([]spec.Config, len(r.points))
		for i := range r.points {
			configs[i] = r.points[i].Config
		}
		r.space = spacefill.NewSpace(configs)
	}
	for _, k := range r.keys {
		for ; k.visited < len(k.rows); k.visited++ {
			r.space.Measure(&k.rows[k.visited].Config)
		}
	}
	return r.space.Nearest
}
