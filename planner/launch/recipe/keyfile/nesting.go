package keyfile

import (
	"bytes"
	"fmt"
)

// maxNesting bounds how deep brackets nest, and the parts of a dotted key: the time of parsers grows with the square of
// both. Launch files have a tenth of it.
const maxNesting = 128

// CheckNesting returns an error if text nests deeper than maxNesting, or has keys with more parts where keys are dotted, as
// in TOML. Brackets in quotes and comments count too.
func CheckNesting(text []byte, dotted bool) error {
	depth := 0
	for _, c := range text {
		switch c {
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("brackets nest deeper than %d", maxNesting)
			}
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	if !dotted {
		return nil
	}
	for line := range bytes.Lines(text) {
		key, _, _ := bytes.Cut(line, []byte("="))
		if bytes.Count(key, []byte(".")) > maxNesting {
			return fmt.Errorf("a key has more than %d parts", maxNesting)
		}
	}
	return nil
}
