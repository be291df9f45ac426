package trainlog

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// compressed are the first bytes of files that are refused.
var compressed = map[string]string{"\x28\xb5\x2f\xfd": "zstd", "\xfd7zX": "xz", "BZh9": "bzip2", "PK\x03\x04": "zip"}

// plainText returns the text of a file, uncompressed and in UTF-8. PowerShell writes UTF-16 with a byte order mark.
func plainText(in io.Reader) (io.Reader, error) {
	r := bufio.NewReader(in)
	head, _ := r.Peek(4)
	if len(head) > 2 && string(head[:2]) == "\x1f\x8b" {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r = bufio.NewReader(z)
	}
	if name := compressed[string(head)]; name != "" {
		return nil, fmt.Errorf("the file is compressed by %s, want text or gzip", name)
	}
	return transform.NewReader(r, unicode.BOMOverride(transform.Nop)), nil
}
