package dl2

// Most bounds the replicas, and the parameter servers, of a job.
const Most = 16

// ShareLeft is the part of a job's steps that is left.
func ShareLeft(done, remaining float64) float64 { return remaining / (done + remaining) }

// TetrisSum adds the size that Tetris subtracts, so jobs with much remaining work run
// first.
func TetrisSum(alignment, size float64) float64 { return alignment + size }
