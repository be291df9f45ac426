package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/snapshot"
	"github.com/pacer-ml/pacer/cmd/server/standby"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
)

// releaseTime bounds what a writer does at its end.
const releaseTime = 10 * time.Second

// checkReplicas reports flags that exclude each other. A replica has the models of its writer, and fits none.
func checkReplicas(c *cli.Context, o *server.Options) error {
	publish, of := c.String("publish"), c.String("replica-of")
	switch {
	case publish != "" && of != "":
		return fail.Usagef("serve: --publish %s and --replica-of %s: want one of them", publish, of)
	case c.Bool("demo") && publish+of != "":
		return fail.Usagef("serve: --demo has data of its own: leave out --publish and --replica-of")
	case of != "" && (c.Duration("replica-poll") <= 0 || c.Duration("replica-max-age") <= 0):
		return fail.Usagef("serve: --replica-poll %v, --replica-max-age %v: want more than 0", c.Duration("replica-poll"), c.Duration("replica-max-age"))
	case of != "":
		o.Refit = 0
	}
	return nil
}

// share makes db and reg those of a writer or a replica, where flags say so. It returns the store to use, and what closes
// it. After an error db is closed.
func share(c *cli.Context, db *store.DB, open func() (*store.DB, error), reg *registry.Registry, listening string, o *server.Options) (_ *store.DB, done func() error, err error) {
	publish, of := c.String("publish"), c.String("replica-of")
	if publish+of == "" {
		return db, db.Close, nil
	}
	bucket, err := snapshot.OpenBucket(c.Context, publish+of)
	if err != nil {
		return nil, nil, errors.Join(fail.Usagef("serve: %w", err), db.Close())
	}
	dir := filepath.Dir(db.Dir())
	if of != "" {
		o.Replica, err = snapshot.NewReplica(c.Context, bucket, dir, db, reg, snapshot.ReplicaOptions{
			Poll: c.Duration("replica-poll"), MaxAge: c.Duration("replica-max-age"), Log: o.Log})
		if err != nil {
			return nil, nil, errors.Join(err, db.Close(), bucket.Close())
		}
		return db, func() error { return errors.Join(db.Close(), bucket.Close()) }, nil
	}
	address, err := reachable(listening)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(), bucket.Close())
	}
	w, err := snapshot.NewWriter(c.Context, bucket, dir, db, open, reg, snapshot.WriterOptions{URL: address, Release: o.Version, Log: o.Log})
	if err != nil {
		return nil, nil, errors.Join(err, bucket.Close())
	}
	o.Writer = w
	return w.DB(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		defer cancel()
		return errors.Join(w.Close(ctx), w.DB().Close(), bucket.Close())
	}, nil
}

// standBy answers checks at l while a writer waits for its lease, until stop is called.
func standBy(c *cli.Context, l net.Listener, o *server.Options) (stop func() error, err error) {
	if c.String("publish") == "" {
		return func() error { return nil }, nil
	}
	tokens, err := access.Load(o.Token, o.TokensFile, func(err error) { o.Log.Error(err.Error()) })
	if err != nil {
		return nil, err
	}
	why := fmt.Sprintf("this server waits for the lease of %s, which another writer may hold, or reads what that has put", c.String("publish"))
	return standby.Serve(l.(standby.Listener), &standby.Options{Why: why, TLS: o.TLS, Tokens: tokens, Version: o.Version, Log: o.Log}), nil
}

// waited returns the errors of a server that has not answered yet. It is none that it was ended while it waited.
func waited(c *cli.Context, err, closed error) error {
	if c.Context.Err() == nil {
		return errors.Join(err, closed)
	}
	fmt.Fprintf(c.App.ErrWriter, "serve: ended before it was the writer: %v\n", err)
	return closed
}

// reachable returns an address that others can use: that of this host, where a server listens on all of its addresses.
func reachable(listening string) (string, error) {
	u, err := url.Parse(listening)
	if err != nil || u.Host == "" {
		return listening, nil // a socket file
	}
	host, port, err := net.SplitHostPort(u.Host)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return listening, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("serve: %w", err)
	}
	return u.Scheme + "://" + net.JoinHostPort(name, port), nil
}
