package columnar

import "io"

// Stubborn keeps the first error of a writer to itself, in Err: the Parquet library
// panics at some. It does not close what it did not open.
type Stubborn struct {
	W   io.Writer
	Err error // after which nothing more is written
}

// Write always says that all of b was written.
func (s *Stubborn) Write(b []byte) (int, error) {
	if s.Err == nil {
		_, s.Err = s.W.Write(b)
	}
	return len(b), nil
}
