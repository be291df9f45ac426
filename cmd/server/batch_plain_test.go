package server

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
)

var elapsed = regexp.MustCompile(`"elapsed_s":[0-9.e-]+`)

// TestPlainBatchIsAny: a plain body, which has a reader and a writer of its own, has the answer that the checks of its
// schema, encoding/json and single predictions give, byte by byte, and so has what differs from one in a few bytes. The
// same body with another case of a name is not plain.
func TestPlainBatchIsAny(t *testing.T) {
	s := newServer(t, Options{})
	ask := func(body []byte) (int, string) { return askedPlain(s, "/v1/predict/batch", body) }
	rnd := rand.New(rand.NewPCG(3, 4))
	plain, accepted, refused := 0, 0, 0
	for i := range 4000 {
		body := plainBody(rnd)
		if i%8 > 0 {
			body = mutated(rnd, body)
		}
		if _, quick := answer.ReadQuestions(body, maxBatch); quick {
			plain++
		}
		status, got := ask(body)
		other := bytes.Replace(body, []byte(`"questions"`), []byte(`"Questions"`), 1)
		if _, quick := answer.ReadQuestions(other, maxBatch); quick {
			t.Fatalf("%s is plain", other)
		}
		wantStatus, want := ask(other)
		if want = strings.ReplaceAll(want, "Questions", "questions"); status != wantStatus || got != want {
			t.Fatalf("%s: %d\n%s, want %d\n%s", body, status, got, wantStatus, want)
		}
		if status == http.StatusOK {
			accepted++
		} else {
			refused++
		}
	}
	if min(plain, accepted-plain, refused) < 300 {
		t.Errorf("%d bodies are plain, %d answered, %d refused: too few of a kind", plain, accepted, refused)
	}
}

// askedPlain returns the answer to a body, without its time.
func askedPlain(s *Server, path string, body []byte) (int, string) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	checkContract(s, r, w)
	return w.Code, elapsed.ReplaceAllString(w.Body.String(), "")
}

// TestPlainQuestionIsAny is TestPlainBatchIsAny for a single question. Its plan is kept from one question to the next, until
// measurements or models change.
func TestPlainQuestionIsAny(t *testing.T) {
	s := newServer(t, Options{})
	rnd := rand.New(rand.NewPCG(5, 6))
	plain, accepted, refused := 0, 0, 0
	for i := range 4000 {
		body, _ := bytes.CutPrefix(plainBody(rnd), []byte(`{"questions":[`))
		body = body[:bytes.IndexByte(body, '}')+1]
		if i%8 > 0 {
			body = mutated(rnd, body)
		}
		if i == 2000 { // fitted to measurements from here on
			if err := s.db.Put(t.Context(), measured(t, s, 2)...); err != nil {
				t.Fatal(err)
			}
			post[FitResponse](t, s, "/v1/fit", "{}")
		}
		_, quick := answer.ReadQuestion(body)
		if quick {
			plain++
		}
		status, got := askedPlain(s, "/v1/predict", body)
		other := bytes.Replace(body, []byte(`"model"`), []byte(`"Model"`), 1)
		if _, quick := answer.ReadQuestion(other); quick {
			t.Fatalf("%s is plain", other)
		}
		wantStatus, want := askedPlain(s, "/v1/predict", other)
		same := strings.ReplaceAll(got, "Mode", "mode") == strings.ReplaceAll(want, "Mode", "mode")
		if status != wantStatus || !same && (quick || !strings.Contains(got, `"value":`)) { // a value has other names of the body
			t.Fatalf("%s: %d\n%s, want %d\n%s", body, status, got, wantStatus, want)
		}
		if status == http.StatusOK {
			accepted++
		} else {
			refused++
		}
	}
	if min(plain, accepted, refused) < 300 || s.models.Generation() == 0 {
		t.Errorf("%d bodies are plain, %d answered, %d refused: too few of a kind", plain, accepted, refused)
	}
}

// plainBody returns a body with one to three questions.
func plainBody(rnd *rand.Rand) []byte {
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	var all []string
	for range 1 + rnd.IntN(3) {
		fields := []string{`"model":"` + one("llama3-8b", "mixtral-8x7b", "turnip") + `"`, `"accelerator":"` + one("h100", "a100") + `"`,
			`"plan": "` + one("dp=8,zero=3", "dp=4,tp=2,mb=2,ga=8", "tp=7", "dp=8", "dp=x") + `"`}
		for _, more := range []string{`"seq":2048`, `"packed":512`, `"global_batch":8`, `"framework":"Megatron Core@0.13"`, `"precision":"bf16"`, `"date":"2024-07"`,
			`"node":""`, `"devices":8`, `"per_node":4`, `"shape":"4+4"`, `"family":"analytic"`, `"adapter":"lora:16"`} {
			if rnd.IntN(6) == 0 {
				fields = append(fields, more)
			}
		}
		rnd.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		all = append(all, "{"+strings.Join(fields, one(",", ", ", ",\n\t"))+"}")
	}
	return []byte(`{"questions":[` + strings.Join(all, ",") + one("]}", "] }", "]}\n"))
}

// mutated changes a body in one or two places.
func mutated(rnd *rand.Rand, body []byte) []byte {
	for range 1 + rnd.IntN(2) {
		at := len(`{"questions":`) + rnd.IntN(len(body)-len(`{"questions":`))
		end := min(at+rnd.IntN(3), len(body))
		with := []string{"", ",", `"`, "}", "{", "]", "[", ":", " ", "0", "9", "-", "e", ".", "\\", `\u0061`, "\x00", "\x7f", "é", "null", `"seq":0,`, `"seq":16777217,`, `"seq":1.0,`, `"seq":01,`, `"seq":1e3,`,
			`"seq":"8",`, `"Seq":4096,`, `"explain":false,`, `"explain":true,`, `"model":"llama3-8b",`, `"stack":[],`, `"inter_node_gbps":100,`, `"node":null,`, `"x":{},`, `"seq":99999999999999999999,`}[rnd.IntN(35)]
		if len(with) > 4 {
			if comma := bytes.IndexByte(body[at:], ','); comma >= 0 {
				at += comma + 1
			}
			end = at
		}
		body = append(append(append([]byte{}, body[:at]...), with...), body[end:]...)
	}
	return body
}
