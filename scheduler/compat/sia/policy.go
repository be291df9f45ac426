package sia

import (
	"cmp"
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// RoundedCost is v^exponent in single precision, rounded to 1/100, at most 3000.
func RoundedCost(v, exponent float64) float64 {
	const most = 3000
	cost := float32(math.Pow(float64(float32(v)), exponent))
	return min(math.RoundToEven(float64(cost*100))/100, most)
}

// assumedStarts are the restart times that Sia assumes, by model.
var assumedStarts = map[string]time.Duration{
	"bert": 120 * time.Second, "deepspeech2": 25 * time.Second, "imagenet": 250 * time.Second, "yolov3": 45 * time.Second,
}

// AssumedStart is the restart time that Sia assumes for a job: 30 s for models without an
// entry in its table. The entry of yolov3 is about half of its actual time.
func AssumedStart(j *scheduler.JobState) time.Duration {
	const others = 30 * time.Second
	return cmp.Or(assumedStarts[j.Job.Model.Name], others)
}
