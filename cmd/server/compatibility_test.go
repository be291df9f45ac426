package server

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var record = flag.String("record", "", "record testdata/recordings/`VERSION`.json, which must not exist, from the present server")

const recordings = "testdata/recordings"

// exchange is a request and its answer. {next}, {id} and {etag} in a request are those of the answer before that had
// one.
type exchange struct {
	Method  string   `json:"method"`
	Path    string   `json:"path"`
	Headers []string `json:"headers,omitempty"` // name, value, ...
	Body    string   `json:"body,omitempty"`
	Guarded bool     `json:"guarded,omitempty"` // sent to a server with a token, without one
	Ended   bool     `json:"ended,omitempty"`   // sent once the last simulation has ended
	// Exact are the fields with constant values, such as rows[].measurement, with all below them; "*" = all.
	Exact []string `json:"exact,omitempty"`

	Status int             `json:"status"`
	Type   string          `json:"type"` // of the content
	Answer json.RawMessage `json:"answer,omitempty"`
}

// replayer sends exchanges to a server.
type replayer struct {
	open, guarded *Server
	values        map[string]string
}

func newReplayer(t *testing.T) *replayer {
	return &replayer{newServer(t, Options{FitRows: -1}), newServer(t, Options{Token: "a-token-of-many-characters"}), map[string]string{}}
}

// send sends the request of e and returns the present answer.
func (r *replayer) send(t *testing.T, e exchange) exchange {
	t.Helper()
	fill := func(text string) string {
		for name, value := range r.values {
			text = strings.ReplaceAll(text, "{"+name+"}", value)
		}
		return text
	}
	s := r.open
	if e.Guarded {
		s = r.guarded
	}
	if e.Ended {
		ended(t, s, r.values["id"])
	}
	var headers []string
	for _, h := range e.Headers {
		headers = append(headers, fill(h))
	}
	w := request(s, e.Method, "http://localhost"+fill(e.Path), e.Body, headers...)
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	e.Status, e.Type, e.Answer = w.Code, kind, nil
	if kind == "application/json" || kind == "application/problem+json" { // not that of OpenAPI: names of types may change
		e.Answer = w.Body.Bytes()
		var seen struct{ Next, ID string }
		if err := json.Unmarshal(e.Answer, &seen); err != nil {
			t.Fatalf("%s %s: %v", e.Method, e.Path, err)
		}
		for name, value := range map[string]string{"next": seen.Next, "id": seen.ID, "etag": w.Header().Get("ETag")} {
			if value != "" {
				r.values[name] = value
			}
		}
	}
	return e
}

// TestCompatibility replays what clients of earlier releases sent. The status is the same, and each field that was
// answered is still there, with a value of the same type, or the same value.
func TestCompatibility(t *testing.T) {
	if *record != "" {
		if err := recordSession(t, *record); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(recordings, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var exchanges []exchange
			if err := json.Unmarshal(text, &exchanges); err != nil {
				t.Fatal(err)
			}
			r := newReplayer(t)
			for i, want := range exchanges {
				for _, problem := range breaksOf(want, r.send(t, want)) {
					t.Errorf("request %d, %s %s: %s", i+1, want.Method, want.Path, problem)
				}
			}
		})
	}
}

// recordSession writes the present answers to the session, with long lists cut.
func recordSession(t *testing.T, version string) error {
	r, out := newReplayer(t), []exchange{}
	for _, e := range session() {
		e = r.send(t, e)
		if e.Answer != nil {
			var v any
			if err := json.Unmarshal(e.Answer, &v); err != nil {
				return err
			}
			answer, err := json.Marshal(shortLists(v))
			if err != nil {
				return err
			}
			e.Answer = answer
		}
		out = append(out, e)
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(recordings, version+".json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// shortLists cuts lists to the elements that show their type.
func shortLists(v any) any {
	const most = 8
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = shortLists(v[k])
		}
	case []any:
		v = v[:min(len(v), most)]
		for i := range v {
			v[i] = shortLists(v[i])
		}
		return v
	}
	return v
}

// breaksOf returns how an answer breaks with the recorded one.
func breaksOf(want, got exchange) (out []string) {
	if want.Status != got.Status || want.Type != got.Type {
		return []string{fmt.Sprintf("status %d, %s, was %d, %s: %s", got.Status, got.Type, want.Status, want.Type, got.Answer)}
	}
	if want.Answer == nil {
		return nil
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(want.Answer, &was), json.Unmarshal(got.Answer, &is)); err != nil {
		return []string{err.Error()}
	}
	return breaks("", was, is, want.Exact)
}

// textsForPeople are lists that the contract lets change.
var textsForPeople = map[string]bool{"warnings": true, "launch.notes": true}

// breaks compares the values of one field. exact has the paths of fields with a constant value.
func breaks(path string, was, is any, exact []string) (out []string) {
	constant := slices.ContainsFunc(exact, func(e string) bool {
		return e == "*" || path == e || strings.HasPrefix(path, e+".") || strings.HasPrefix(path, e+"[")
	})
	if reflect.TypeOf(was) != reflect.TypeOf(is) {
		return []string{fmt.Sprintf("%s is %T, was %T", path, is, was)}
	}
	switch was := was.(type) {
	case map[string]any:
		for name, value := range was {
			at := strings.TrimPrefix(path+"."+name, ".")
			now, ok := is.(map[string]any)[name]
			if !ok {
				if !leftOut(path, name) {
					out = append(out, at+" is absent")
				}
				continue
			}
			out = append(out, breaks(at, value, now, exact)...)
		}
		return out
	case []any:
		now := is.([]any)
		for i, value := range was {
			other, ok := counterpart(value, now, i)
			switch {
			case ok:
				out = append(out, breaks(path+"[]", value, other, exact)...)
			case constant || len(now) == 0 && !textsForPeople[path]:
				out = append(out, fmt.Sprintf("%s lacks %v", path, value))
			}
		}
		return out
	}
	if constant && was != is {
		return []string{fmt.Sprintf("%s is %v, was %v", path, is, was)}
	}
	return nil
}

// leftOut reports whether a field is one of a plan that is left out where it is 0, false or "", or a fitted parameter.
// Which plan is the best, and which parameters a fit moves, changes with the models.
func leftOut(path, name string) bool {
	if path == "cards[].params" {
		return true
	}
	if path != "plan" && !strings.HasSuffix(path, ".plan") {
		return false
	}
	return slices.ContainsFunc(reflect.VisibleFields(reflect.TypeFor[spec.Plan]()), func(f reflect.StructField) bool {
		return f.Tag.Get("json") == name+",omitempty"
	})
}

// counterpart returns the element of a list that corresponds to element i of the recorded one: that with the same
// name, since lists of named things grow, else the one in the same place.
func counterpart(was any, now []any, i int) (any, bool) {
	if object, ok := was.(map[string]any); ok && object["name"] != nil {
		at := slices.IndexFunc(now, func(v any) bool {
			other, ok := v.(map[string]any)
			return ok && other["name"] == object["name"]
		})
		if at < 0 {
			return nil, false
		}
		return now[at], true
	}
	if i >= len(now) {
		return nil, false
	}
	return now[i], true
}

// TestCompatibilityBreaks: the comparison finds each kind of break, and accepts additions.
func TestCompatibilityBreaks(t *testing.T) {
	const was = `{"rows":[{"name":"a","n":1,"s":"x"},{"name":"b","n":2,"s":"y"}],"step_s":1.5,"by":"analytic","why":null,"notes":["old"]}`
	for _, c := range []struct {
		is    string
		exact []string
		want  string
	}{
		{was, []string{"*"}, ""},
		{`{"rows":[{"name":"0","n":7,"s":""},{"name":"a","n":9,"s":"z","more":1},{"name":"b","n":2,"s":"y"}],"step_s":2,"by":"hybrid","why":null,"notes":["new","newer"],"more":{}}`, nil, ""},
		{`{"rows":[{"name":"a","n":9,"s":"x"},{"name":"b","n":2,"s":"y"}],"step_s":2,"by":"hybrid","why":null,"notes":["new"]}`, []string{"rows[].s", "by"}, "by is hybrid, was analytic"},
		{`{"rows":[{"name":"a","n":9,"s":"x"},{"name":"b","n":2,"s":"y"}],"step_s":2,"by":"analytic","why":null,"notes":["new"]}`, []string{"rows"}, "rows[].n is 9, was 1"},
		{`{"rows":[{"name":"b","n":2,"s":"y"}],"step_s":2,"by":"analytic","why":null,"notes":["new"]}`, []string{"rows"}, "rows lacks map[n:1 name:a s:x]"},
		{`{"rows":[{"name":"a","n":1,"s":"x"}],"step_s":"2","by":"analytic","why":null,"notes":["new"]}`, nil, "step_s is string, was float64"},
		{`{"rows":[{"name":"a","n":1,"s":null}],"step_s":2,"by":"analytic","why":null,"notes":["new"]}`, nil, "rows[].s is <nil>, was string"},
		{`{"rows":[{"name":"a","n":1}],"step_s":2,"by":"analytic","why":null,"notes":["new"]}`, nil, "rows[].s is absent"},
		{`{"rows":[{"name":"a","n":1,"s":"x"}],"step_s":2,"by":"analytic","why":null,"notes":[]}`, nil, "notes lacks old"},
		{`{"rows":[{"name":"a","n":1,"s":"x"}],"step_s":2,"by":"analytic","why":"x","notes":["new"]}`, nil, "why is string, was <nil>"},
	} {
		want, got := exchange{Status: 200, Answer: json.RawMessage(was), Exact: c.exact}, exchange{Status: 200, Answer: json.RawMessage(c.is)}
		if out := strings.Join(breaksOf(want, got), "; "); out != c.want {
			t.Errorf("%s: %q, want %q", c.is, out, c.want)
		}
		got.Status = 201
		if out := breaksOf(want, got); len(out) != 1 {
			t.Errorf("another status: %q", out)
		}
	}
}

// TestRecordKeeps: a recording is never written over.
func TestRecordKeeps(t *testing.T) {
	files, err := os.ReadDir(recordings)
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	if err := recordSession(t, strings.TrimSuffix(files[0].Name(), ".json")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}

// TestSessionIsComplete: the next recording has an answer of status 200 of each operation.
func TestSessionIsComplete(t *testing.T) {
	r := newReplayer(t)
	answered := map[string]bool{}
	for _, e := range session() {
		path, _, _ := strings.Cut(strings.Replace(e.Path, "{id}", "*", 1), "?")
		if got := r.send(t, e); got.Status == http.StatusOK {
			answered[e.Method+" "+path] = true
		}
	}
	for pattern := range r.open.router.ops {
		if !answered[strings.Replace(pattern, "{id}", "*", 1)] {
			t.Errorf("the session has no answer of %s", pattern)
		}
	}
}

// TestCompatibilityOfPlans: a plan may lack what is left out where it is 0, and nothing else.
func TestCompatibilityOfPlans(t *testing.T) {
	was := map[string]any{"config": map[string]any{"plan": map[string]any{"zero": 1.0, "dp": 2.0}}, "zero": 1.0}
	is := map[string]any{"config": map[string]any{"plan": map[string]any{}}}
	got := breaks("", was, is, nil)
	slices.Sort(got)
	if want := []string{"config.plan.dp is absent", "zero is absent"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
