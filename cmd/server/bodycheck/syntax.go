package bodycheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// maxDepth bounds the nesting of objects and lists; requests need 6.
const maxDepth = 32

// Malformed returns the place and kind of the error in a body that is no JSON, is
// too deep or has a number out of range; nil for other bodies. Its memory does
// not grow with the body.
func Malformed(body []byte) *problem.Problem {
	offset, err := checkSyntax(body)
	if err == nil {
		return nil
	}
	at := pathAt(body, offset)
	p := problem.New(http.StatusBadRequest, "", fmt.Sprintf("the body is no JSON of the kind wanted: at %s, byte %d: %v", at, offset, err))
	p.Errors = []*huma.ErrorDetail{{Location: at, Message: err.Error(), Value: near(body, offset)}}
	return p
}

// checkSyntax returns the first error of body and its offset.
func checkSyntax(body []byte) (offset int, err error) {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			i = stringEnd(body, i)
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i, fmt.Errorf("more than %d levels", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case '0' <= c && c <= '9':
			end, exponent := numberEnd(body, i)
			if exponent || end-i > maxDigits {
				if err := checkNumber(body[i:end]); err != nil {
					return i, err
				}
			}
			i = end - 1
		}
	}
	if json.Valid(body) {
		return 0, nil
	}
	err = json.Unmarshal(body, new(json.RawMessage)) // finds the error before it copies
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return len(body), err
	}
	if bad := int(syntax.Offset) - 1; bad >= 0 && bad < len(body) && !strings.HasPrefix(err.Error(), "unexpected end") {
		return bad, err
	}
	return len(body), io.ErrUnexpectedEOF
}

// stringEnd returns the offset of the quote that ends the string at i, len(body)
// without one.
func stringEnd(body []byte, i int) int {
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(body)
}

// maxDigits is the length up to which a number without an exponent is in range.
const maxDigits = 300

// numberEnd returns the offset after the number at i, and whether it has an exponent.
func numberEnd(body []byte, i int) (end int, exponent bool) {
	for ; i < len(body); i++ {
		switch c := body[i]; {
		case '0' <= c && c <= '9', c == '.', c == '+', c == '-':
		case c == 'e', c == 'E':
			exponent = true
		default:
			return i, exponent
		}
	}
	return i, exponent
}

// checkNumber returns an error for a number that no float64 holds.
func checkNumber(digits []byte) error {
	if _, err := strconv.ParseFloat(string(digits), 64); errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is larger than any number", problem.Echo(string(digits)))
	}
	return nil
}

// level is an object or list around a place in a body.
type level struct {
	object bool
	key    []byte // of the present field; nil before it
	wants  bool   // the next string is a key
	index  int    // of the present item
}

// pathAt returns the path of the value at offset, such as body.measurements[3].config.
// The levels around it are at most maxDepth.
func pathAt(body []byte, offset int) string {
	var open []level
	for i := 0; i < min(offset, len(body)); i++ {
		top := &level{}
		if len(open) > 0 {
			top = &open[len(open)-1]
		}
		switch body[i] {
		case '"':
			end := stringEnd(body, i)
			if top.wants && end < offset {
				top.key, top.wants = body[i+1:end], false
			}
			i = end
		case ',':
			top.key, top.wants = nil, top.object
			top.index++
		case '{', '[':
			object := body[i] == '{'
			open = append(open, level{object: object, wants: object})
		case '}', ']':
			open = open[:max(len(open)-1, 0)]
		}
	}
	at := "body"
	for _, l := range open {
		switch {
		case !l.object:
			at += "[" + strconv.Itoa(l.index) + "]"
		case l.key != nil:
			at += "." + strings.ToValidUTF8(problem.Echo(string(l.key)), "")
		}
	}
	return at
}

// near returns the text of body at offset.
func near(body []byte, offset int) string {
	from := min(max(offset, 0), len(body))
	to := min(from+32, len(body))
	return string(bytes.ToValidUTF8(body[from:to], nil))
}
