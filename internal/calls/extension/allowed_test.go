// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/registry"
)

const notAllowed = `handler "v.acme": call extension: the gateway may not call this host: the gateway's operator can add it to --allowed-extension-hosts`

func allowing(t *testing.T, list ...string) *connect.Allowed {
	t.Helper()
	allowed, err := connect.ParseAllowed(list)
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// TestOnlyAllowedHostsAreCalled tests the list with names and with networks.
func TestOnlyAllowedHostsAreCalled(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	for item, want := range map[string]bool{
		"ext.example": true, ".example": true, "127.0.0.0/8": true, "127.0.0.1": true, "other.example": false, "10.0.0.0/8": false,
	} {
		r := newREST(t, Config{LookupHost: resolver("127.0.0.1"), Allowed: allowing(t, item)})
		m, err := call(t.Context(), r, newCall(atHost(s.cc, "ext.example")))
		if want && err != nil {
			t.Errorf("with %s: %v", item, err)
		}
		if !want {
			wantError(t, "with "+item, m, err, hook.Unreachable, notAllowed)
		}
	}
}

// TestNamesAreCheckedAtEveryConnection tests a name that leads elsewhere after it was looked at: to an address that no
// extension may have, and to one that is not allowed.
func TestNamesAreCheckedAtEveryConnection(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	for next, want := range map[string]string{
		"169.254.169.254": `handler "v.acme": call extension: address of the host is link-local, where extensions are not allowed`,
		"127.1.1.1":       notAllowed,
	} {
		var lookups atomic.Int32
		rebinding := func(context.Context, string) ([]netip.Addr, error) {
			if lookups.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr(next)}, nil
		}
		r := newREST(t, Config{LookupHost: rebinding, MaxConnectionAge: 1, Allowed: allowing(t, "127.0.0.1", "169.254.0.0/16")})
		mustCall(t, r, atHost(s.cc, "ext.example"))
		m, err := call(t.Context(), r, newCall(atHost(s.cc, "ext.example")))
		wantError(t, "the name leads to "+next, m, err, hook.Unreachable, want)
	}
}

// TestProxiesAreNoWayAround tests that a proxy is asked only for hosts that are allowed by name, and never for Services.
func TestProxiesAreNoWayAround(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{LookupHost: resolver("127.0.0.1"), Proxy: http.ProxyURL(u), Allowed: allowing(t, "127.0.0.0/8", "listed.example")}
	m, err := call(t.Context(), newREST(t, config), newCall(atHost(s.cc, "ext.example")))
	wantError(t, "the name is not listed", m, err, hook.Unreachable, notAllowed)
	if n := asked.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
	m, err = call(t.Context(), newREST(t, config), newCall(atHost(s.cc, "listed.example")))
	wantError(t, "the name is listed", m, err, hook.Unreachable, `handler "v.acme": call extension: proxy answered 403 Forbidden`)
	asked.Store(0)
	for _, host := range []string{"acme.system.svc", "acme.system.svc.cluster.local"} {
		// The certificate is for another name: it is the handshake that fails, with the Service itself.
		if _, err := call(t.Context(), newREST(t, config), newCall(atHost(s.cc, host))); err == nil || asked.Load() != 0 {
			t.Errorf("%s: %v, and the proxy was asked %d times", host, err, asked.Load())
		}
	}
}

// TestOnlyAllowedHostsAreCalledOverGRPC tests the list with addresses and sockets over gRPC.
func TestOnlyAllowedHostsAreCalledOverGRPC(t *testing.T) {
	plain := listen(t, "tcp", "127.0.0.1:0")
	serveGRPC(t, plain, says(fine(), nil), nil)
	path := filepath.Join(t.TempDir(), "extension.sock")
	serveGRPC(t, listen(t, "unix", path), says(fine(), nil), nil)
	for extension, items := range map[string]map[string]bool{
		"grpc://" + plain.Addr().String(): {"127.0.0.1": true, "127.0.0.0/8": true, "10.0.0.0/8": false, "unix://" + path: false},
		"unix://" + path:                  {"unix://" + path: true, "unix://" + filepath.Dir(path) + "/": true, "unix:///run/": false, "0.0.0.0/0": false},
	} {
		for item, want := range items {
			g := newGRPC(t, Config{Allowed: allowing(t, item)})
			m, err := callGRPC(t.Context(), g, newCall(registry.ClientConfig{Protocol: registry.GRPC, URL: extension}))
			if want && err != nil {
				t.Errorf("%s with %s: %v", extension, item, err)
			}
			if !want {
				wantError(t, extension+" with "+item, m, err, hook.Unreachable, notAllowed)
			}
		}
	}
}
