// Package access says what a request may do: tokens with scopes and expiry, TLS certificates, and what browsers tell of
// the page that makes a request. Files of tokens and certificates are read again when they change.
//
// Start with Tokens (what a server finds tokens in) and TLSConfig. request.go reads the headers of requests.
package access
