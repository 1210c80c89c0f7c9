// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// LocalHosts returns a handler for plain HTTP. If it is served on loopback, it answers only requests for localhost, a
// loopback address, or the host of the configured address: a web page whose name has come to resolve to loopback (DNS
// rebinding) asks with that name. Elsewhere it returns h.
func LocalHosts(h http.Handler, configured string, bound net.Addr) http.Handler {
	if a, ok := bound.(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return h
	}
	own := hostOf(configured)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		ip, err := netip.ParseAddr(host)
		if host == "" || host == own || host == "localhost" || err == nil && ip.IsLoopback() {
			h.ServeHTTP(w, r)
			return
		}
		http.Error(w, fmt.Sprintf("%.100q is not a host name of this server, which listens on loopback: use localhost or %s",
			host, bound), http.StatusMisdirectedRequest)
	})
}

// SameSite returns a handler that refuses what a browser asks for a page of another site, with the client certificate
// of its user or on the machine of its user: all that changes something, and all that the page embeds or reads. A
// person may follow a link to a page.
func SameSite(h http.Handler) http.Handler {
	var protection http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		embedded := (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
		if embedded || protection.Check(r) != nil {
			http.Error(w, "pages of other sites may not call this server", http.StatusForbidden)
			return
		}
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin") // for browsers that do not say what they fetch for
		h.ServeHTTP(w, r)
	})
}

// hostOf returns the host of host:port, or of a host alone, in lower case.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
