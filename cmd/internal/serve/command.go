package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/cmd/server/snapshot"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/pacer-ml/pacer/profiler/store"
)

// serveGC is the growth of the heap in percent before a collection. The live heap is some 25 MiB. With more, pages of memory
// that no request has used yet cost more than the collections that it saves.
const serveGC = 200

// Command is pacer serve.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve predictions, plans, curves and fit checks over HTTP, and store measurements",
		Description: `docs/guides/serve.md describes the API; GET /openapi.json is its OpenAPI document.

   pacer serve
   curl -s localhost:8470/v1/plan -H 'Content-Type: application/json' \
     -d '{"model":"llama3-8b","accelerator":"h100","devices":16,
          "global_batch":128}'

While it runs, only the server has the store open: post measurements to it. An
address that other machines reach needs a token, in a file or in $` + command.TokenVariable + `. On
SIGTERM it finishes running requests and ends; acknowledged measurements are on disk.

A flag that is not given has the value of its variable, $` + variablePrefix + `MAX_BODY for
--max-body, else that of --config:

   listen: 127.0.0.1:8470
   max-body: 1048576
   allowed-hosts: [pacer.example.org]`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "take flags that are not given from the YAML `FILE`", Category: "Global"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8470", Usage: "listen at `ADDRESS`; port 0 is any free port", Category: "Network"},
			&cli.StringFlag{Name: "grpc-listen", Usage: "answer gRPC and Arrow Flight at `ADDRESS`, with the same tokens, TLS and limits", DefaultText: "no gRPC", Category: "Network"},
			&cli.StringFlag{Name: "tokens", Usage: "require a token of `FILE`, which pacer token writes", Category: "Network"},
			&cli.StringFlag{Name: "token-file", Usage: "require the bearer token in `FILE`", DefaultText: "$" + command.TokenVariable, Category: "Network"},
			&cli.StringSliceFlag{Name: "allowed-hosts", Usage: "answer requests to `HOST` too, besides localhost and loopback addresses (repeatable)", DefaultText: "with tokens any, without none", Category: "Network"},
			&cli.StringFlag{Name: "tls-cert", Usage: "answer over TLS with the certificate in `FILE`, read again when it changes", Category: "Network"},
			&cli.StringFlag{Name: "tls-key", Usage: "use the key in `FILE` for --tls-cert", Category: "Network"},
			&cli.StringFlag{Name: "tls-client-ca", Usage: "require a certificate of clients that one in `FILE` signed", Category: "Network"},
			&cli.StringFlag{Name: "access-log", Usage: "append a JSON line for each request to `FILE`; - = standard error", Category: "Network"},
			&cli.StringFlag{Name: "audit-log", Usage: "append a JSON line for each request of scope fit or admin to `FILE`; - = standard error", Category: "Network"},
			&cli.StringFlag{Name: "otlp-endpoint", Usage: "send traces and metrics to the OpenTelemetry collector at `URL`", DefaultText: "$OTEL_EXPORTER_OTLP_ENDPOINT", Category: "Network"},
			&cli.Int64Flag{Name: "max-buffered", Usage: "keep at most `BYTES` of bodies and answers in memory", DefaultText: "a quarter of --memory-gib, 256 MiB at most", Category: "Limits"},
			&cli.Int64Flag{Name: "max-body", Value: 8 << 20, Usage: "reject requests of more than `BYTES`", Category: "Limits"},
			&cli.Int64Flag{Name: "max-answer", Value: 64 << 20, Usage: "refuse responses of more than `BYTES`", Category: "Limits"},
			&cli.Float64Flag{Name: "memory-gib", Usage: "keep memory below `GIB` by collecting garbage more often", DefaultText: "half of the machine's, or $GOMEMLIMIT", Category: "Limits"},
			&cli.IntFlag{Name: "max-requests", Value: 1024, Usage: "answer at most `N` requests at a time", Category: "Limits"},
			&cli.IntFlag{Name: "max-searches", Usage: "run at most `N` short plan searches at a time, and half as many long ones", DefaultText: "twice the cores", Category: "Limits"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "end a request after `TIME`", Category: "Limits"},
			&cli.DurationFlag{Name: "fit-timeout", Value: 10 * time.Minute, Usage: "end a requested fit after `TIME`", Category: "Limits"},
			&cli.DurationFlag{Name: "drain", Value: 10 * time.Second, Usage: "finish running requests within `TIME` when the server ends", Category: "Limits"},
			&cli.DurationFlag{Name: "shutdown-delay", Usage: "answer on for `TIME` after SIGTERM, no longer ready, so that load balancers notice", Category: "Limits"},
			&cli.StringFlag{Name: "publish", Usage: "put what is stored and fitted into `URL`, file:///DIR or s3://BUCKET/PREFIX, for replicas, before it is acknowledged", Category: "Replicas"},
			&cli.StringFlag{Name: "replica-of", Usage: "answer from what the server with --publish `URL` has, and store nothing", Category: "Replicas"},
			&cli.DurationFlag{Name: "replica-poll", Value: snapshot.DefaultPoll, Usage: "look for what is new every `TIME`", Category: "Replicas"},
			&cli.DurationFlag{Name: "replica-max-age", Value: snapshot.DefaultMaxAge, Usage: "be no longer ready when what is new was last seen this `TIME` ago", Category: "Replicas"},
			&cli.BoolFlag{Name: "demo", Usage: "serve the built-in measurements from a temporary directory", Category: "Fitting"},
			&cli.DurationFlag{Name: "refit", Value: 30 * time.Second, Usage: "fit models again this `TIME` after the last new measurement of them, or half as long again after the first; 0 = only on request", Category: "Fitting"},
			&cli.StringFlag{Name: "fit-family", Value: family.Default, Usage: "fit `FAMILY` of performance model, see pacer ls families", Category: "Fitting"},
			&cli.StringFlag{Name: "fit-rows", Value: "all", Usage: "fit each model to `N` rows, or all", Category: "Fitting"},
		},
		Before: settle,
		Action: runServe,
	}
}

func runServe(c *cli.Context) (err error) {
	o, err := serverOptions(c)
	if err != nil {
		return err
	}
	if err := secure(c, &o); err != nil {
		return err
	}
	if err := boundMemory(c, &o); err != nil {
		return err
	}
	closeLog, err := openLogs(c, &o)
	if err != nil {
		return err
	}
	if err := checkReplicas(c, &o); err != nil {
		return err
	}
	d := datadir.Of(c)
	if c.Bool("demo") {
		remove, bad := useDemo(d)
		if bad != nil {
			return bad
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	endTelemetry, err := telemetry(c, &o)
	if err != nil {
		return errors.Join(err, closeLog())
	}
	defer endTelemetry()
	return errors.Join(serveData(c, d, o), closeLog())
}

// serveData serves the data directory d.
func serveData(c *cli.Context, d *datadir.Dir, o server.Options) error {
	open := func() (*store.DB, error) { return d.Open(store.Options{Reserve: serveReserve}) }
	db, err := open()
	if err != nil {
		return err
	}
	tighten(db.Dir(), o.Log)
	reg, err := d.Fitted()
	if err != nil {
		return errors.Join(err, db.Close())
	}
	l, url, err := listen(c.String("listen"), o.TLS != nil)
	if err != nil {
		return errors.Join(fmt.Errorf("serve: %w", err), db.Close())
	}
	stop, err := standBy(c, l, &o)
	if err != nil {
		return errors.Join(err, l.Close(), db.Close())
	}
	db, done, err := share(c, db, open, reg, url, &o)
	if err = errors.Join(err, stop()); err != nil {
		if done != nil {
			err = errors.Join(err, done())
		}
		return waited(c, err, l.Close())
	}
	rpc, err := listenRPC(c)
	if err != nil {
		return errors.Join(fmt.Errorf("serve: %w", err), l.Close(), done())
	}
	closeAll := func() error {
		if rpc == nil {
			return l.Close()
		}
		return errors.Join(l.Close(), rpc.Close())
	}
	s, err := server.New(db, reg, o)
	if err == nil && c.Bool("demo") {
		err = fillDemo(c.Context, s, db)
	}
	var withdraw func() error
	if err == nil {
		withdraw, err = datadir.Announce(filepath.Dir(db.Dir()), url)
	}
	if err != nil {
		return errors.Join(err, closeAll(), done())
	}
	fmt.Fprintf(c.App.ErrWriter, "serve: listening on %s, store %s\n", url, db.Dir())
	err = errors.Join(s.Serve(c.Context, l, rpc), withdraw(), done())
	if err == nil {
		fmt.Fprintln(c.App.ErrWriter, "serve: ended")
	}
	return err
}

// serveReserve is the disk space that a server holds. One that was killed starts with it on a full disk.
const serveReserve = 96 << 20

// boundMemory sets how garbage is collected, unless the environment does.
func boundMemory(c *cli.Context, o *server.Options) error {
	limit, err := memoryLimit(c)
	if err != nil {
		return err
	}
	if limit > 0 {
		debug.SetMemoryLimit(limit)
		if o.MaxBuffered == 0 {
			o.MaxBuffered = max(min(limit/4, 256<<20), o.MaxBody)
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serveGC)
	}
	return nil
}

// memoryLimit returns the limit of memory in bytes; 0 keeps the present one, as if the
// environment sets it.
func memoryLimit(c *cli.Context) (int64, error) {
	if !c.IsSet("memory-gib") {
		if os.Getenv("GOMEMLIMIT") != "" {
			return 0, nil
		}
		return int64(device.UsableMemory() / 2), nil
	}
	bound := c.Float64("memory-gib")
	if !(bound > 0 && bound <= 1<<20) {
		return 0, fail.Usagef("serve: --memory-gib %g is not in (0, %d]", bound, 1<<20)
	}
	return int64(bound * memory.GiB), nil
}

func serverOptions(c *cli.Context) (server.Options, error) {
	o := server.Options{
		MaxBody: c.Int64("max-body"), MaxAnswer: c.Int64("max-answer"), MaxBuffered: c.Int64("max-buffered"), MaxRequests: c.Int("max-requests"), MaxSearches: c.Int("max-searches"),
		Timeout: c.Duration("timeout"), FitTimeout: c.Duration("fit-timeout"), Drain: c.Duration("drain"), ShutdownDelay: c.Duration("shutdown-delay"), AllowedHosts: c.StringSlice("allowed-hosts"),
		Refit: c.Duration("refit"), FitFamily: c.String("fit-family"), Seed: command.Seed(c), Version: c.App.Version, SimulationsAfter: int(time.Now().Unix()),
		Log: slog.New(slog.NewTextHandler(c.App.ErrWriter, nil)),
	}
	for _, f := range []string{"max-body", "max-answer", "max-requests", "timeout", "fit-timeout", "drain"} {
		if fmt.Sprint(c.Value(f)) == "0" || fmt.Sprint(c.Value(f)) == "0s" {
			return o, fail.Usagef("serve: --%s 0 would answer no request", f)
		}
	}
	if fam, err := family.Lookup(o.FitFamily); err != nil {
		return o, fail.Usagef("serve: --fit-family: %w", err)
	} else if fam.Fit == nil {
		return o, fail.Usagef("serve: --fit-family %s is not fitted", o.FitFamily)
	}
	rows, err := command.Rows(c, "fit-rows")
	if o.FitRows = rows; rows == 0 {
		o.FitRows = -1
	}
	if err == nil {
		if bad := o.Validate(); bad != nil {
			err = fail.Usagef("serve: %w", bad)
		}
	}
	return o, err
}
