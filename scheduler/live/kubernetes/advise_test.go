package kubernetes

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// TestAdvice: the latest advice on a job is written once, as an annotation and an Event, and nothing else is. What the
// server refuses is tried again.
func TestAdvice(t *testing.T) {
	c := filled(t, 0, 1)
	j, err := c.jobs.Jobs("default").Get("j0")
	if err != nil {
		t.Fatal(err)
	}
	var requests []string
	status := http.StatusServiceUnavailable
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasSuffix(r.URL.Path, "/events") {
			var e struct{ Reason, Message string }
			if err := json.Unmarshal(body, &e); err != nil {
				t.Error(err)
			}
			body = []byte(e.Reason + " " + e.Message)
		}
		requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Event"}`)
	}))
	t.Cleanup(s.Close)
	if c.client, err = kubernetes.NewForConfig(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}); err != nil {
		t.Fatal(err)
	}
	c.Limit, c.ReadOnly = time.Minute, true
	event := live.Event{Kind: live.Decided, Job: &live.Job{Ref: j}, Message: "dp=1 on n0=1: the first", DryRun: true}
	c.Advise(live.Event{Kind: live.Waiting, Job: event.Job, Message: "no devices", DryRun: true})
	c.Advise(event)
	c.Advise(live.Event{Kind: live.Decided, Job: event.Job, Message: "a decision that is carried out"})
	c.Advise(live.Event{Kind: live.PolicyFailed, Object: "policy", Message: "an error", DryRun: true})
	if err := c.WriteAdvice(t.Context()); err == nil || !strings.Contains(err.Error(), "advice on job default/j0") {
		t.Errorf("of a server that fails: %v", err)
	}
	requests, status = nil, http.StatusOK
	for range 2 {
		if err := c.WriteAdvice(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`PATCH /apis/batch/v1/namespaces/default/jobs/j0 {"metadata":{"annotations":{"pacer.dev/advice":"dp=1 on n0=1"},"uid":"j0"}}`,
		"POST /api/v1/namespaces/default/events Advice dp=1 on n0=1: the first",
	}
	if !slices.Equal(requests, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(requests, "\n"), strings.Join(want, "\n"))
	}
	j.Annotations[AdviceAnnotation] = "dp=1 on n0=1" // as it is seen now
	event.Message = "dp=1 on n0=1: another reason"
	c.Advise(event)
	if err := c.WriteAdvice(t.Context()); err != nil || len(requests) != 2 {
		t.Errorf("the same advice again: %v, %q", err, requests)
	}
}
