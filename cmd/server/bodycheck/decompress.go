package bodycheck

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// ErrEncoding is the error of a body in an encoding other than gzip and zstd.
var ErrEncoding = errors.New("unknown content encoding")

// Decompressed returns a reader of the plain body. Its memory is bounded by most.
func Decompressed(encoding string, body io.Reader, most int64) (r io.Reader, end func(), err error) {
	switch strings.ToLower(encoding) {
	case "", "identity":
		return body, func() {}, nil
	case "gzip":
		r, err = gzip.NewReader(body)
		return r, func() {}, err
	case "zstd":
		d, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(uint64(max(most, 8<<20)))) // 8 MiB: what encoders take
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	}
	return nil, nil, fmt.Errorf("%w %q: want gzip or zstd", ErrEncoding, problem.Echo(encoding))
}
