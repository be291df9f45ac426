package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
)

// fill sets every exported field of a struct, and of structs in it, to a value other
// than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		v.Set(reflect.ValueOf(errors.New("x")))
	}
}

// Requests and responses keep every field: a new field of the planner's types needs
// one on the wire.
func TestWireHoldsEveryField(t *testing.T) {
	var r planner.Request
	fill(reflect.ValueOf(&r).Elem())
	if got := FromRequest(r).Planner(); !reflect.DeepEqual(got, r) {
		t.Errorf("request %+v, want %+v", got, r)
	}
	var c planner.Choice
	fill(reflect.ValueOf(&c).Elem())
	if got := FromChoice(c).Planner(); !reflect.DeepEqual(got, c) {
		t.Errorf("choice %+v, want %+v", got, c)
	}
	var k planner.Ranking
	fill(reflect.ValueOf(&k).Elem())
	if got := FromRanking(k).Planner(); !reflect.DeepEqual(got, k) {
		t.Errorf("ranking %+v, want %+v", got, k)
	}
	var v planner.Curve
	fill(reflect.ValueOf(&v).Elem())
	var e planner.InfeasibleError
	fill(reflect.ValueOf(&e).Elem())
	if got := FromInfeasible(&e).Planner(); !reflect.DeepEqual(got, &e) {
		t.Errorf("infeasible %+v, want %+v", got, &e)
	}
	got, err := FromCurve(v).Planner()
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("curve %+v, want %+v; %v", got, v, err)
	}
}

func TestACurveOfWrongIndices(t *testing.T) {
	for _, i := range []int{-1, 0, 1} {
		if _, err := (Curve{Points: []CurvePoint{{1, i}}}).Planner(); err == nil {
			t.Errorf("choice %d of none", i)
		}
	}
}

func newClient(t *testing.T, o Options, answer http.HandlerFunc) *Client {
	t.Helper()
	web := httptest.NewServer(answer)
	t.Cleanup(web.Close)
	c, err := New(web.URL+"/", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A request is repeated as often and as late as Retry-After says, and never without
// it.
func TestRetries(t *testing.T) {
	var tries atomic.Int64
	after := func(n int64, header string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if tries.Add(1) <= n {
				if header != "" {
					w.Header().Set("Retry-After", header)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			fmt.Fprint(w, `{"throughput":2}`)
		}
	}
	for _, c := range []struct {
		name    string
		n       int64
		header  string
		retries int
		tries   int64
		ok      bool
	}{
		{"twice", 2, "0", 0, 3, true},
		{"a date", 1, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 2, true},
		{"too often", 9, "0", 2, 3, false},
		{"never", 1, "0", -1, 1, false},
		{"no date", 1, "", 0, 1, false},
		{"nonsense", 1, "soon", 0, 1, false},
	} {
		tries.Store(0)
		got, err := newClient(t, Options{Retries: c.retries, MaxWait: time.Millisecond}, after(c.n, c.header)).Predict(t.Context(), spec.Config{})
		if (err == nil) != c.ok || tries.Load() != c.tries || c.ok && got.Throughput != 2 {
			t.Errorf("%s: %v after %d tries, want %d", c.name, err, tries.Load(), c.tries)
		}
	}
}

// With patience, a question is repeated where the server hangs, hangs up or is overloaded. Other requests are not.
func TestPatience(t *testing.T) {
	var tries atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		switch tries.Add(1) {
		case 1:
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, `{"throughput":2}`)
		}
	}
	o := Options{Retries: -1, Patience: time.Minute, Timeout: 100 * time.Millisecond}
	if got, err := newClient(t, o, answer).Predict(t.Context(), spec.Config{}); err != nil || got.Throughput != 2 || tries.Load() < 4 {
		t.Errorf("%+v, %v after %d tries", got, err, tries.Load())
	}
	for first := range int64(3) {
		tries.Store(first)
		if err := newClient(t, o, answer).Do(t.Context(), http.MethodPost, "/v1/fit", map[string]int{}, nil); err == nil || tries.Load() != first+1 {
			t.Errorf("%v after %d tries", err, tries.Load()-first)
		}
	}
}

// A context that ends while the client waits ends the call.
func TestContextEndsTheWait(t *testing.T) {
	c := newClient(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9000")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := c.Best(ctx, planner.Request{})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > spectest.Patience(5*time.Second) {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	var problem *Error
	if !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests {
		t.Errorf("%v does not say what the server answered", err)
	}
}

// Errors that callers branch on keep their identity and text; others have the text of
// the server.
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		status     int
		is         error
		says       string
	}{
		{"application/problem+json", `{"type":"urn:pacer:problem:infeasible","detail":"planner: nothing"}`, 422, planner.ErrInfeasible, "planner: nothing"},
		{"application/problem+json; charset=utf-8", `{"type":"urn:pacer:problem:not-covered","detail":"x"}`, 422, perfmodel.ErrNotCovered, "x"},
		{"application/problem+json", `{"type":"urn:pacer:problem:too-few-points","detail":"x"}`, 422, perfmodel.ErrTooFewPoints, "x"},
		{"application/problem+json", `{"title":"T","status":422,"detail":"D","errors":[{"location":"body.x","message":"M"}]}`, 422, nil, "remote: 422 T: D; body.x: M"},
		{"text/html", strings.Repeat("<p>", 1000), 502, nil, "remote: 502 Bad Gateway: <p>"},
		{"application/problem+json", `{`, 500, nil, "remote: 500 Internal Server Error"},
	} {
		client := newClient(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		_, err := client.Rank(t.Context(), planner.Request{})
		if err == nil || !strings.HasPrefix(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) || len(err.Error()) > 500 {
			t.Errorf("%s: %v, want %s", c.body, err, c.says)
		}
	}
}

func TestTokenAndFamilyAreSent(t *testing.T) {
	client := newClient(t, Options{Token: "secret", Family: "hybrid"}, func(w http.ResponseWriter, r *http.Request) {
		b := new(strings.Builder)
		_, _ = fmt.Fprint(b, r.Header.Get("Authorization"), r.URL.Path)
		if b.String() != "Bearer secret"+PathPredict {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, `{"throughput":1}`)
	})
	if _, err := client.Predict(t.Context(), spec.Config{}); err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	for _, base := range []string{"", "localhost:8470", "ftp://x", "http://", "://", "unix:"} {
		if _, err := New(base, Options{}); err == nil {
			t.Errorf("%q is an address", base)
		}
	}
	for _, o := range []Options{{MaxWait: -1}, {Timeout: -1}, {Patience: -1}} {
		if _, err := New("http://x", o); err == nil {
			t.Errorf("%+v is negative", o)
		}
	}
	if _, err := New("unix:/x", Options{HTTP: http.DefaultClient}); err == nil {
		t.Error("a client that cannot reach a socket")
	}
}

// Only answers of servers on other machines are compressed.
func TestCompression(t *testing.T) {
	for address, want := range map[string]bool{"http://127.0.0.1:8470": false, "https://localhost": false, "http://[::1]:8470": false, "unix:/run/pacer.sock": false,
		"http://10.0.0.1:8470": true, "https://pacer.example.org": true} {
		c, err := New(address, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := !c.o.HTTP.Transport.(*http.Transport).DisableCompression; got != want {
			t.Errorf("%s: compressed is %v, want %v", address, got, want)
		}
	}
}
