package keyfile

import "bytes"

// withoutComments replaces the comments of JSON, and commas before a closing bracket, by spaces: DeepSpeed reads its files
// as Hjson (deepspeed/runtime/config.py). Offsets and lines stay.
func withoutComments(text []byte) []byte {
	out := bytes.Clone(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	comma := -1
	for i := 0; i < len(out); i++ {
		rest := out[i:]
		switch c := out[i]; {
		case c == '"':
			i, comma = i+quoted(rest), -1
		case c == '#', bytes.HasPrefix(rest, []byte("//")):
			end := len(out)
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				end = i + n
			}
			blank(i, end)
			i = end - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			end := len(out)
			if n := bytes.Index(rest, []byte("*/")); n >= 0 {
				end = i + n + 2
			}
			blank(i, end)
			i = end - 1
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c > ' ':
			comma = -1
		}
	}
	return out
}

// quoted returns the offset of the quote that ends the string at the beginning of text.
func quoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
