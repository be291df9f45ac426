package columnar

import "io"

// StickyWriter keeps the first error of W in Err and always reports success, because the Parquet library panics
// at some write errors. After the first error it writes nothing. Callers check Err at the end. It does not
// close W.
type StickyWriter struct {
	W   io.Writer
	Err error // the first error of W
}

// Write implements io.Writer; it never returns an error.
func (s *StickyWriter) Write(b []byte) (int, error) {
	if s.Err == nil {
		_, s.Err = s.W.Write(b)
	}
	return len(b), nil
}
