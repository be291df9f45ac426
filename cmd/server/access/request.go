package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Bearer returns the bearer token of r, "" without one.
func Bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return token
}

// CrossSite reports whether a page of another site made r, by the headers that
// browsers add.
func CrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// Host returns the host of an address, with or without a port.
func Host(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return strings.Trim(addr, "[]")
}

// Loopback reports whether host is this machine, by number or as localhost.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host) // allocates nothing
	return err == nil && ip.Zone() == "" && ip.IsLoopback()
}
