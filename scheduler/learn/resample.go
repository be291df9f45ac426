package learn

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// EpisodeSeed returns the seed of an episode's workload. Training episodes have numbers from 0, validation episodes
// below 0.
func EpisodeSeed(seed uint64, number int) uint64 {
	return stream(seed, "workload", number).Uint64() >> 11 // exact in any number format
}

// Resample returns as many jobs, each drawn at random from jobs with replacement. Gaps between submissions are
// permuted, and IDs stay unique.
func Resample(jobs []spec.Job, seed uint64, number int) []spec.Job {
	r := rand.New(rand.NewPCG(EpisodeSeed(seed, number), 1))
	at := make([]time.Duration, len(jobs))
	for i := range jobs {
		at[i] = jobs[i].Submit
	}
	slices.Sort(at)
	gaps := make([]time.Duration, len(at)) // the first job is submitted at once
	for i := 1; i < len(at); i++ {
		gaps[i] = at[i] - at[i-1]
	}
	r.Shuffle(len(gaps)-1, func(i, j int) { gaps[i+1], gaps[j+1] = gaps[j+1], gaps[i+1] })
	out, now := make([]spec.Job, len(jobs)), time.Duration(0)
	for i := range out {
		now += gaps[i]
		j := jobs[r.IntN(len(jobs))]
		if j.Deadline > 0 {
			j.Deadline += now - j.Submit
		}
		j.ID, j.Submit = jobs[i].ID, now
		out[i] = j
	}
	return out
}
