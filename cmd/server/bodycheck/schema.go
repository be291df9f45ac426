package bodycheck

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"
	"github.com/tidwall/gjson"
	"golang.org/x/text/unicode/norm"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

const (
	// MaxErrors is the number of errors of a body that are looked for.
	MaxErrors = 20
	// maxKeys bounds the fields of one object, unknown and repeated ones included.
	maxKeys = 1024
	// maxItems bounds a list without a bound of its own, such as the step times of a
	// measurement: as many as the largest row of the store holds.
	maxItems = 1 << 19
)

// validator checks a body against its schema while it reads it. It builds single
// scalars only, and stops after MaxErrors.
type validator struct {
	schemas huma.Registry
	path    *huma.PathBuffer
	res     huma.ValidateResult
	// freeText is set inside fields that are no names, such as the last lines of a log.
	freeText bool
}

// Invalid returns the problem with a body, which is JSON; nil for a valid one.
func Invalid(schemas huma.Registry, s *huma.Schema, body []byte) *problem.Problem {
	v := validator{schemas: schemas, path: huma.NewPathBuffer(make([]byte, 0, 128), 0)}
	v.path.Push("body")
	v.value(s, gjson.ParseBytes(body))
	if len(v.res.Errors) == 0 {
		return nil
	}
	p := problem.New(http.StatusUnprocessableEntity, "", "validation failed")
	for _, err := range v.res.Errors {
		if d, ok := err.(*huma.ErrorDetail); ok { //nolint:errorlint // huma adds no other type
			p.Errors = append(p.Errors, d)
		}
	}
	return p
}

// freeTexts are the fields with text that may have several lines.
var freeTexts = []string{"reason", "doubt", "env", "text", "set"}

// PlainText reports whether s can be a name: two equal names have the same bytes, and
// nothing in a name is invisible. Format characters such as U+202E reorder text.
func PlainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= utf8.RuneSelf {
			return norm.NFC.IsNormalString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) })
		}
	}
	return !strings.Contains(s, "\x7f")
}

// full reports whether enough errors are found.
func (v *validator) full() bool { return len(v.res.Errors) >= MaxErrors }

func (v *validator) value(s *huma.Schema, x gjson.Result) {
	s = v.resolve(s)
	if s.AnyOf != nil {
		if s = v.alternative(s, x); s == nil {
			v.add(x, validation.MsgExpectedMatchAtLeastOneSchema)
			return
		}
	}
	switch {
	case x.IsObject() && s.Type == huma.TypeObject:
		v.object(s, x)
	case x.IsArray() && s.Type == huma.TypeArray:
		v.array(s, x)
	case x.IsObject() && s.Type != "":
		v.scalar(s, map[string]any{}) // of the wrong type
	case x.IsArray() && s.Type != "":
		v.scalar(s, []any{})
	case x.Type == gjson.String && !v.freeText && !PlainText(x.Str):
		v.add(x, "expected text in Unicode normal form C without control or invisible characters")
	case !x.IsObject() && !x.IsArray():
		v.scalar(s, x.Value())
	}
}

func (v *validator) scalar(s *huma.Schema, x any) {
	huma.Validate(v.schemas, s, v.path, huma.ModeWriteToServer, x, &v.res)
}

func (v *validator) resolve(s *huma.Schema) *huma.Schema {
	for s.Ref != "" {
		s = v.schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// alternative returns the first alternative of s with the type of x; nil = none.
func (v *validator) alternative(s *huma.Schema, x gjson.Result) *huma.Schema {
	for _, sub := range s.AnyOf {
		sub = v.resolve(sub)
		switch {
		case x.IsObject() && sub.Type == huma.TypeObject, x.IsArray() && sub.Type == huma.TypeArray,
			x.Type == gjson.String && sub.Type == huma.TypeString:
			return sub
		}
	}
	return nil
}

func (v *validator) object(s *huma.Schema, x gjson.Result) {
	missing := slices.Clone(s.Required)
	seen, keys := make([]string, 0, 16), 0
	x.ForEach(func(key, field gjson.Result) bool {
		if keys++; keys > maxKeys {
			v.add(x, fmt.Sprintf(validation.MsgExpectedMaxProperties, maxKeys))
			return false
		}
		name, of := property(s, key.String())
		if i := slices.Index(missing, name); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		}
		v.path.Push(problem.Echo(key.String()))
		defer v.path.Pop()
		switch {
		case name != "" && slices.Contains(seen, name): // encoding/json would mix both
			v.add(x, "repeated property")
		case of == nil:
			if closed, ok := s.AdditionalProperties.(bool); ok && !closed {
				v.add(x, validation.MsgUnexpectedProperty)
			}
		case field.Type == gjson.Null && !slices.Contains(s.Required, name): // as if absent
		default:
			outer := v.freeText
			v.freeText = outer || slices.Contains(freeTexts, name)
			v.value(of, field)
			v.freeText = outer
		}
		seen = append(seen, name)
		return !v.full()
	})
	if v.full() {
		return
	}
	for _, name := range missing {
		v.add(x, fmt.Sprintf(validation.MsgExpectedRequiredProperty, name))
	}
}

// property returns the name and schema of a field of s. Names match in any case, as
// in encoding/json.
func property(s *huma.Schema, key string) (string, *huma.Schema) {
	if of := s.Properties[key]; of != nil {
		return key, of
	}
	for name, of := range s.Properties {
		if strings.EqualFold(name, key) {
			return name, of
		}
	}
	of, _ := s.AdditionalProperties.(*huma.Schema)
	return "", of
}

func (v *validator) array(s *huma.Schema, x gjson.Result) {
	most, n := maxItems, 0
	if s.MaxItems != nil {
		most = *s.MaxItems
	}
	x.ForEach(func(_, item gjson.Result) bool {
		if n == most {
			v.add(x, fmt.Sprintf(validation.MsgExpectedMaxItems, most))
			return false
		}
		v.path.PushIndex(n)
		defer v.path.Pop()
		n++
		v.value(s.Items, item)
		return !v.full()
	})
	if s.MinItems != nil && n < *s.MinItems {
		v.add(x, fmt.Sprintf(validation.MsgExpectedMinItems, *s.MinItems))
	}
}

// add adds an error about x. Only a short value is part of it.
func (v *validator) add(x gjson.Result, message string) {
	var value any
	if len(x.Raw) <= problem.MaxEcho {
		value = x.Value()
	}
	v.res.Add(v.path, value, message)
}
