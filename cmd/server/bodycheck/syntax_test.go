package bodycheck

import (
	"encoding/json"
	"strings"
	"testing"
)

// A body is well formed exactly if encoding/json accepts it and its depth and numbers
// are in bounds. The path of an error never panics.
func FuzzMalformed(f *testing.F) {
	for _, body := range []string{`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,zero=1","seq":2048,"global_batch":8}`, `{"seq":1e999}`, `{"seq":1E5}`, "[1" + strings.Repeat("0", 400) + "]", strings.Repeat("[", 40) + strings.Repeat("]", 40), `{} x`, `{"a":[{"b`, `]]{"a\`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p := Malformed([]byte(body))
		for i := range len(body) + 1 {
			pathAt([]byte(body), i)
		}
		if p == nil && strings.TrimSpace(body) != "" && !json.Valid([]byte(body)) {
			t.Errorf("%q is accepted", body)
		}
		var v any
		if p != nil && json.Unmarshal([]byte(body), &v) == nil && !strings.Contains(p.Detail, "levels") {
			t.Errorf("%q: %s", body, p.Detail)
		}
	})
}

// The path of an error names the fields and items around it.
func TestPathAt(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":NaN}`: "body.a", `{"a":1,"b":[0,{"c\"d":x}]}`: `body.b[1].c\"d`, `[[1],[2,!]]`: "body[1][1]", `{!}`: "body", `{"a":1,!`: "body", `{"a":{"b":1},"c":-}`: "body.c",
	} {
		p := Malformed([]byte(body))
		if p == nil || p.Errors[0].Location != want {
			t.Errorf("%s: %+v, want %s", body, p, want)
		}
	}
}
