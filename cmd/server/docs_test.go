package server

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// curlRequest is a request with curl in docs/guides/serve.md.
var curlRequest = regexp.MustCompile(`(?s)curl -s localhost:8470(/\S+) -H 'Content-Type: application/json'[ \\\n]+-d '(.*?)'`)

// Every request of docs/guides/serve.md has an answer, and the session changes the
// answer as documented.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Options{})
	var rows []query.PlanRow
	requests := curlRequest.FindAllStringSubmatch(string(text), -1)
	for _, m := range requests {
		if m[1] == "/v1/predict" {
			rows = append(rows, post[query.Plans](t, s, m[1], m[2]).Plans...)
		} else if w := do(s, http.MethodPost, m[1], m[2]); w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", m[1], m[2], w.Code, w.Body)
		}
	}
	if len(requests) != 5 || strings.Count(string(text), "curl -s localhost") != 5 || len(rows) != 2 {
		t.Fatalf("%d requests read, with %d predictions", len(requests), len(rows))
	}
	before, after := rows[0], rows[1]
	if before.By != "analytic" || after.By != "hybrid" || after.StepTimeSec < 1.3*before.StepTimeSec {
		t.Errorf("%g s by %s, then %g s by %s", before.StepTimeSec, before.By, after.StepTimeSec, after.By)
	}
	said := fmt.Sprintf("The first answer is %.1f s `by` `%s`, the last %.1f s `by` `%s`.", before.StepTimeSec, before.By, after.StepTimeSec, after.By)
	if !strings.Contains(string(text), said) {
		t.Errorf("the guide does not say %q", said)
	}
}
