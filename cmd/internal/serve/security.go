package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// secure sets the tokens and TLS of o, and refuses an address that other machines reach
// without a token.
func secure(c *cli.Context, o *server.Options) (err error) {
	if o.Token, err = bearerToken(c); err != nil {
		return err
	}
	if o.TokensFile = c.String("tokens"); o.TokensFile != "" {
		if _, err := os.Stat(o.TokensFile); err != nil {
			return fail.Usagef("serve: --tokens: %w; pacer token create makes one", err)
		}
	}
	cert, key, ca := c.String("tls-cert"), c.String("tls-key"), c.String("tls-client-ca")
	switch {
	case (cert == "") != (key == ""), ca != "" && cert == "":
		return fail.Usagef("serve: --tls-cert, --tls-key and --tls-client-ca: want the first two together, the third only with them")
	case cert != "":
		if o.TLS, err = access.TLSConfig(cert, key, ca, func(err error) { o.Log.Error(err.Error()) }); err != nil {
			return fail.Usagef("serve: --tls-cert: %w", err)
		}
	}
	for _, name := range []string{"listen", "grpc-listen"} {
		addr := c.String(name)
		if addr == "" && name == "grpc-listen" {
			continue
		}
		if guarded, err := server.Guarded(addr); err != nil {
			return fail.Usagef("serve: --%s: %w", name, err)
		} else if guarded && o.Token == "" && o.TokensFile == "" {
			return fail.Usagef("serve: --%s %s is reached by other machines, which needs a token: --tokens FILE, --token-file FILE, or $%s", name, addr, command.TokenVariable)
		}
	}
	return nil
}

// bearerToken returns the token of the file, else that of the environment, ""
// where there is neither.
func bearerToken(c *cli.Context) (string, error) {
	path, from := c.String("token-file"), "$"+command.TokenVariable
	token := os.Getenv(command.TokenVariable)
	if path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fail.Usagef("serve: --token-file: %w", err)
		}
		token, from = string(b), "--token-file "+path
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "" && path != "":
		return "", fail.Usagef("serve: --token-file %s is empty", path)
	case token != "" && len(token) < access.MinToken:
		return "", fail.Usagef("serve: the token of %s has %d characters, want at least %d: pacer token create makes a strong one", from, len(token), access.MinToken)
	}
	return token, nil
}

// tighten takes the permissions of other users from the directory of a store, which an earlier release or a copy made with
// more.
func tighten(dir string, log *slog.Logger) {
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		log.Warn("other users may read the measurements: want mode 0700", "store", dir, "error", err)
	}
}

// listen listens at addr, host:port or unix:PATH, and returns the address of clients.
func listen(addr string, tls bool) (net.Listener, string, error) {
	path, unix := strings.CutPrefix(addr, server.Unix)
	if !unix {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, "", err
		}
		scheme := "http://"
		if tls {
			scheme = "https://"
		}
		return l, scheme + l.Addr().String(), nil
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, "", errors.Join(fmt.Errorf("listen %s: another server answers there", addr), c.Close())
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil { // of a server that was killed
			return nil, "", err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, "", err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, addr, nil
}

// listenRPC listens at the address of --grpc-listen, and prints it; nil without one.
func listenRPC(c *cli.Context) (net.Listener, error) {
	addr := c.String("grpc-listen")
	if addr == "" {
		return nil, nil
	}
	l, _, err := listen(addr, false)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(addr, server.Unix) {
		addr = l.Addr().String()
	}
	fmt.Fprintf(c.App.ErrWriter, "serve: gRPC and Arrow Flight on %s\n", addr)
	return l, nil
}

// openLogs opens the files of --access-log and --audit-log.
func openLogs(c *cli.Context, o *server.Options) (done func() error, err error) {
	var files []*os.File
	done = func() (err error) {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for flag, to := range map[string]**slog.Logger{"access-log": &o.AccessLog, "audit-log": &o.AuditLog} {
		w := c.App.ErrWriter
		switch path := c.String(flag); path {
		case "":
			continue
		case "-":
		default:
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return done, errors.Join(fail.Usagef("serve: --%s: %w", flag, err), done())
			}
			w, files = f, append(files, f)
		}
		*to = slog.New(slog.NewJSONHandler(w, nil))
	}
	return done, nil
}

// useDemo makes d a temporary directory.
func useDemo(d *datadir.Dir) (remove func() error, err error) {
	if d.Given != "" {
		return nil, fail.Usagef("serve: --demo has data of its own: leave out --data %s", d.Given)
	}
	if d.Given, err = os.MkdirTemp("", "pacer-demo-"); err != nil {
		return nil, fmt.Errorf("serve: --demo: %w", err)
	}
	return func() error { return os.RemoveAll(d.Given) }, nil
}

// fillDemo stores built-in measurements of a CPU and fits models to them.
func fillDemo(ctx context.Context, s *server.Server, db *store.DB) error {
	set, err := measured.Lookup("cpu-small")
	var rows []spec.Measurement
	if err == nil {
		rows, err = importer.Measured(set)
	}
	if err == nil {
		err = db.Put(ctx, rows...)
	}
	if err != nil {
		return fmt.Errorf("serve: --demo: %w", err)
	}
	return s.FitStored(ctx)
}
