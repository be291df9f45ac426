package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificates are the TLS files of a server. It reads them again when they change.
type certificates struct {
	cert, key, clientCA string
	warn                func(error)

	mu      sync.Mutex
	checked time.Time
	changed [3]time.Time
	config  *tls.Config
}

// TLSConfig returns the configuration of a server with a certificate and key in PEM.
// With clientCA, a file of certificates, clients must have one that these signed. The
// files are read again when they change; where that fails, warn is called and the
// configuration before stays.
func TLSConfig(cert, key, clientCA string, warn func(error)) (*tls.Config, error) {
	c := &certificates{cert: cert, key: key, clientCA: clientCA, warn: warn}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	c.changed = c.times()
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil }}, nil
}

func (c *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", c.cert, c.key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if c.clientCA != "" {
		b, err := os.ReadFile(c.clientCA)
		if err != nil {
			return fmt.Errorf("certificates of clients: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(b) {
			return fmt.Errorf("%s has no certificate in PEM", c.clientCA)
		}
	}
	c.config = config
	return nil
}

// times are the times of change of the files; zero for one that cannot be read.
func (c *certificates) times() (out [3]time.Time) {
	for i, path := range []string{c.cert, c.key, c.clientCA} {
		if info, err := os.Stat(path); err == nil {
			out[i] = info.ModTime()
		}
	}
	return out
}

// current returns the configuration of the files as they are, checked once a second.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) >= time.Second {
		c.checked = now
		if t := c.times(); t != c.changed {
			if err := c.load(); err != nil {
				c.warn(errors.Join(errors.New("the certificate before stays in use"), err))
			} else {
				c.changed = t
			}
		}
	}
	return c.config
}
