package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/access"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

// sign writes NAME.crt and NAME.key, signed by a; an authority of its own where a is nil.
func (a *authority) sign(t *testing.T, dir, name string, serial int64) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	out := &authority{template, key, dir}
	if a == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		a = out
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if out.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// lines are the lines of a log, as many as fit.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// newTLS returns an authority, the TLS of a server with a certificate of it that demands one of clients, and that of a client
// which has one.
func newTLS(t *testing.T) (ca *authority, server, client *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	ca = (*authority)(nil).sign(t, dir, "ca", 1)
	ca.sign(t, dir, "server", 2)
	ca.sign(t, dir, "client", 3)
	at := func(name string) string { return filepath.Join(dir, name) }
	server, err := access.TLSConfig(at("server.crt"), at("server.key"), at("ca.crt"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(at("client.crt"), at("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return ca, server, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "localhost"}
}

// The server answers over TLS, demands a client's certificate, and takes a renewed
// certificate without a restart.
func TestTLS(t *testing.T) {
	ca, config, client := newTLS(t)
	logged := make(lines, 1)
	s := newServer(t, Options{TLS: config, Log: slog.New(slog.NewJSONHandler(logged, nil))})
	addr, _ := serve(t, s)
	serial := func(certs ...tls.Certificate) (int64, error) {
		with := client.Clone()
		with.Certificates = certs
		client := http.Client{Transport: &http.Transport{TLSClientConfig: with}}
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+addr+"/healthz", nil)
		if err != nil {
			return 0, err
		}
		res, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		return res.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}
	if n, err := serial(client.Certificates...); n != 2 || err != nil {
		t.Errorf("certificate %d, %v", n, err)
	}
	if n, err := serial(); err == nil {
		t.Errorf("without a client's certificate: %d", n)
	}
	select {
	case line := <-logged:
		if !strings.Contains(line, `"level":"WARN","msg":"http: TLS handshake error`) {
			t.Error(line)
		}
	case <-time.After(time.Minute):
		t.Error("a failed handshake is not in the log of the server")
	}
	ca.sign(t, ca.dir, "server", 4)
	later := time.Now().Add(time.Hour)
	for _, f := range []string{"server.crt", "server.key"} {
		if err := os.Chtimes(filepath.Join(ca.dir, f), later, later); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		n, err := serial(client.Certificates...)
		if n == 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("certificate %d, %v", n, err)
		}
	}
	if _, err := access.TLSConfig(filepath.Join(ca.dir, "server.crt"), filepath.Join(ca.dir, "client.key"), "", nil); err == nil {
		t.Error("the key of another certificate")
	}
}
