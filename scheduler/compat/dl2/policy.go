package dl2

// Most is how many replicas, and how many parameter servers, the simulator gives a job.
const Most = 16

// ShareLeft is the part of a job's steps that is left.
func ShareLeft(done, remaining float64) float64 { return remaining / (done + remaining) }

// TetrisSum adds what Tetris subtracts, so that jobs of which much is left go first.
func TetrisSum(alignment, size float64) float64 { return alignment + size }
