package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// putRequest is a MeasurementsRequest that may be repeated.
type putRequest struct {
	Key     string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~ ]*$" patternDescription:"printable ASCII" doc:"Any printable ASCII text of the client's, new for each request. A request that is repeated with it within 24 hours, also after the server was killed, gets the first answer. Tokens have keys of their own."`
	Body    MeasurementsRequest
	RawBody []byte
}

// keyed are the operations with an idempotency key. Others that change something refuse one; questions ignore it.
var keyed = []string{"POST /v1/measurements", "POST /v1/simulations"}

// withoutKey refuses requests with an idempotency key, which next would not keep.
func withoutKey(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			problem.Write(w, problem.New(http.StatusUnprocessableEntity, "", fmt.Sprintf("Idempotency-Key %q: this operation keeps none, and does the same again when it is repeated: leave it out", problem.Echo(key))))
			return
		}
		next(w, r)
	}
}

// underWay are the idempotency keys of requests that are being answered.
type underWay struct {
	mu   sync.Mutex
	keys map[[2]string]bool
}

// begin reports whether no other request has the key; end must be called then.
func (u *underWay) begin(key [2]string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys[key] {
		return false
	}
	if u.keys == nil {
		u.keys = map[[2]string]bool{}
	}
	u.keys[key] = true
	return true
}

func (u *underWay) end(key [2]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.keys, key)
}

// postMeasurements stores measurements, once for each idempotency key.
func (s *Server) postMeasurements(ctx context.Context, in *putRequest) (Stored, error) {
	return s.storeOnce(ctx, in.Key, sha256.Sum256(in.RawBody), func() ([]spec.Measurement, error) {
		return s.measurements(context.WithoutCancel(ctx), in.Body.Measurements)
	})
}

// storeOnce stores the measurements that read returns, once for each idempotency key of a client; "" is none. sum is
// the hash of the request. A client that disconnects does not stop the write, which is all or nothing.
func (s *Server) storeOnce(ctx context.Context, name string, sum [sha256.Size]byte, read func() ([]spec.Measurement, error)) (Stored, error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.mayWrite(); err != nil {
		return Stored{}, err
	}
	out, err := s.putOnce(ctx, name, sum, read)
	if err == nil {
		err = s.acknowledge(ctx)
	}
	return out, err
}

// putOnce is storeOnce without what a writer of replicas needs.
func (s *Server) putOnce(ctx context.Context, name string, sum [sha256.Size]byte, read func() ([]spec.Measurement, error)) (Stored, error) {
	if name == "" {
		rows, err := read()
		if err != nil {
			return Stored{}, err
		}
		return s.store(rows, func(ms ...spec.Measurement) (store.Counts, error) { return s.db.PutAll(ctx, ms...) })
	}
	client := requestOf(ctx).token
	key := [2]string{client, name}
	if !s.underWay.begin(key) {
		return Stored{}, problem.New(http.StatusConflict, "", fmt.Sprintf("a request with Idempotency-Key %q is being answered: repeat it later", problem.Echo(name)))
	}
	defer s.underWay.end(key)
	kept, found, err := s.db.Answered(client, name)
	switch {
	case err != nil:
		return Stored{}, err
	case found && kept.Body != sum:
		return Stored{}, problem.KeyOfAnother(name)
	case found:
		out := s.stored(kept.Counts)
		out.Replayed = true
		return out, nil
	}
	rows, err := read()
	if err != nil {
		return Stored{}, err
	}
	return s.store(rows, func(ms ...spec.Measurement) (store.Counts, error) {
		return s.db.PutOnce(ctx, client, name, sum, ms...)
	})
}

// stored is the answer with counts.
func (s *Server) stored(n store.Counts) Stored {
	return Stored{Rows: n.Total(), Added: n.Added, Updated: n.Updated, Unchanged: n.Unchanged, Forgotten: n.Forgotten, Refit: s.o.Refit > 0}
}
