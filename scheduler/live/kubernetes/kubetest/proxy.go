package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands before the API server of a cluster, and answers some requests as a busy or failing one does.
type Proxy struct {
	pass *httputil.ReverseProxy

	mu    sync.Mutex
	rng   *rand.Rand
	tries map[string]int // of faults that may have happened, by kind
	count map[string]int // of faults, by kind
}

// Kinds of faults.
const (
	busy     = "429"
	broken   = "500"
	conflict = "409"
	silent   = "500 after a write that was made"
	late     = "late event"
)

// latest is how long the events of a watch are held back at most.
const latest = time.Second

// Proxy returns a proxy that draws its faults from rng.
func (c *Cluster) Proxy(t testing.TB, rng *rand.Rand) *Proxy {
	t.Helper()
	config, err := Config(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{rng: rng, tries: map[string]int{}, count: map[string]int{}}
	p.pass = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ModifyResponse: p.answered, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(server) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, apierrors.NewInternalError(err)) }}
	return p
}

// writtenKey is the key of the function of a Front in the context of a request.
type writtenKey struct{}

// Front serves the proxy until the end of the test, and returns a kubeconfig of an administrator for it. It calls written
// after each change of a job or pod, before the client has the answer.
func (p *Proxy) Front(t testing.TB, written func()) (kubeconfig string) {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), writtenKey{}, written)))
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	k := clientapi.NewConfig()
	k.Clusters["proxy"] = &clientapi.Cluster{Server: front.URL}
	k.AuthInfos["proxy"] = &clientapi.AuthInfo{}
	k.Contexts["proxy"] = &clientapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	k.CurrentContext = "proxy"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// Faults returns how often each kind of fault happened.
func (p *Proxy) Faults() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Trim(fmt.Sprint(p.count), "map[]")
}

// Lacks returns the kinds of faults that did not happen.
func (p *Proxy) Lacks() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kind := range []string{busy, broken, conflict, silent, late} {
		if p.count[kind] == 0 {
			out = append(out, kind)
		}
	}
	return out
}

// draw returns a number below n.
func (p *Proxy) draw(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.IntN(n)
}

// happens draws whether a fault happens that does so once in some times, and counts it. One that has not happened in so many
// times does.
func (p *Proxy) happens(kind string, times int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[kind]++
	if p.rng.IntN(times) > 0 && (p.count[kind] > 0 || p.tries[kind] < times) {
		return false
	}
	p.count[kind]++
	return true
}

var errDrawn = errors.New("a fault of the test")

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.happens(busy, 16):
		refuse(w, apierrors.NewTooManyRequests(errDrawn.Error(), p.draw(2))) // with a time to wait, or without
	case p.happens(broken, 16):
		refuse(w, apierrors.NewInternalError(errDrawn))
	case r.Method != http.MethodGet && p.happens(conflict, 16):
		refuse(w, apierrors.NewConflict(schema.GroupResource{}, r.URL.Path, errDrawn))
	default:
		p.pass.ServeHTTP(w, r)
	}
}

// refuse answers with an error, as the API server writes it.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = meta.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(d.RetryAfterSeconds))
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// answered takes the answers of some writes away, and holds back the events of watches.
func (p *Proxy) answered(r *http.Response) error {
	of := r.Request
	if written, ok := of.Context().Value(writtenKey{}).(func()); ok && r.StatusCode == http.StatusOK && of.Method == http.MethodPatch &&
		!strings.Contains(of.URL.Path, "/events") {
		written()
	}
	switch {
	case of.URL.Query().Get("watch") != "":
		r.Body = &lateEvents{r.Body, of, p}
	case of.Method != http.MethodGet && p.happens(silent, 16):
		return errDrawn
	}
	return nil
}

// lateEvents is the body of a watch.
type lateEvents struct {
	io.ReadCloser
	of *http.Request
	p  *Proxy
}

func (l *lateEvents) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	if n == 0 || !l.p.happens(late, 3) {
		return n, err
	}
	select {
	case <-l.of.Context().Done():
	case <-time.After(time.Duration(l.p.draw(int(latest)))):
	}
	return n, err
}
