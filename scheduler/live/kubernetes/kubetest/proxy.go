package kubetest

import (
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
	Kubeconfig string // of an administrator, by way of the proxy

	pass *httputil.ReverseProxy

	mu    sync.Mutex
	rng   *rand.Rand
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

// Proxy starts a proxy that draws its faults from rng, until the end of the test.
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
	p := &Proxy{rng: rng, count: map[string]int{}, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	p.pass = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ModifyResponse: p.answered, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(server) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, apierrors.NewInternalError(err)) }}
	front := httptest.NewServer(p)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	k := clientapi.NewConfig()
	k.Clusters["proxy"] = &clientapi.Cluster{Server: front.URL}
	k.AuthInfos["proxy"] = &clientapi.AuthInfo{}
	k.Contexts["proxy"] = &clientapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	k.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*k, p.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
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

func (p *Proxy) counts(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[kind]++
}

var errDrawn = errors.New("a fault of the test")

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch fault := p.draw(16); {
	case fault == 0:
		p.counts(busy)
		refuse(w, apierrors.NewTooManyRequests(errDrawn.Error(), p.draw(2))) // with a time to wait, or without
	case fault == 1:
		p.counts(broken)
		refuse(w, apierrors.NewInternalError(errDrawn))
	case fault == 2 && r.Method != http.MethodGet:
		p.counts(conflict)
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
	switch {
	case r.Request.URL.Query().Get("watch") != "":
		r.Body = &lateEvents{r.Body, r.Request, p}
	case r.Request.Method != http.MethodGet && p.draw(16) == 0:
		p.counts(silent)
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
	if n == 0 || l.p.draw(3) > 0 {
		return n, err
	}
	l.p.counts(late)
	select {
	case <-l.of.Context().Done():
	case <-time.After(time.Duration(l.p.draw(int(latest)))):
	}
	return n, err
}
