// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
)

// What connect.Forbidden says of an address holds for what a name resolves to, and for an address as the URL's host.
func TestAddressesThatNoExtensionMayHave(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	for address, is := range map[string]string{
		"169.254.169.254": "link-local", "::ffff:169.254.169.254": "link-local", "fe80::1%eth0": "link-local", "ff02::1": "multicast", "::": "unspecified",
	} {
		want := `handler "v.acme": call extension: address of the host is ` + is + ", where extensions are not allowed"
		r := newREST(t, Config{LookupHost: resolver(address)})
		m, err := call(t.Context(), r, newCall(atHost(s.cc, "ext.example")))
		wantError(t, address, m, err, hook.Unreachable, want)
		host := address
		if strings.Contains(host, ":") {
			host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
		}
		m, err = call(t.Context(), r, newCall(atHost(s.cc, host)))
		wantError(t, address+" as the URL's host", m, err, hook.Unreachable, want)
	}
}

// Calls of one name take turns on the three servers behind it.
func TestCallsAreBalancedOverTheAddressesOfAHost(t *testing.T) {
	a := newAuthority(t)
	addresses := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	var mu sync.Mutex
	calls := map[string]int{}
	var arrived sync.WaitGroup
	handler := func(w http.ResponseWriter, req *http.Request) {
		host, _, _ := net.SplitHostPort(req.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		mu.Lock()
		calls[host]++
		mu.Unlock()
		arrived.Done()
		arrived.Wait() // so that every call needs a connection of its own
		answer(success)(w, req)
	}
	first := newServer(t, a, handler, func(s *httptest.Server) { s.EnableHTTP2 = true })
	_, port, _ := net.SplitHostPort(first.Listener.Addr().String())
	for _, address := range addresses[1:] {
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			t.Skipf("this machine has no %s, port %s: %v", address, port, err)
		}
		newServer(t, a, handler, func(s *httptest.Server) {
			_ = s.Listener.Close()
			s.Listener, s.EnableHTTP2 = l, true
		})
	}

	r := newREST(t, Config{LookupHost: resolver(addresses...)})
	arrived.Add(6)
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			if _, err := r.Call(t.Context(), newCall(atHost(first.cc, "ext.example"))); err != nil {
				t.Errorf("Call: %v", err)
			}
		})
	}
	callers.Wait()
	if diff := cmp.Diff(map[string]int{"127.0.0.1": 2, "127.0.0.2": 2, "127.0.0.3": 2}, calls); diff != "" {
		t.Errorf("HTTP/1.1: -want +got\n%s", diff)
	}

	// With HTTP/2, calls would all go over the first connection if there were only one.
	clear(calls)
	r = newREST(t, Config{LookupHost: resolver(addresses...), PreferHTTP2: true})
	for range 12 {
		arrived.Add(1)
		mustCall(t, r, atHost(first.cc, "ext.example"))
	}
	if len(calls) != 3 {
		t.Errorf("HTTP/2: calls went to %v only", calls)
	}
}

func TestTheNextAddressIsTriedWhenOneRefuses(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	// Whichever is first, the call arrives; with the forbidden one alone, it would not.
	for _, addresses := range [][]string{{"127.0.0.9", "127.0.0.1"}, {"169.254.0.1", "127.0.0.1"}, {"fe80::1", "127.0.0.1"}} {
		for range 2 {
			mustCall(t, newREST(t, Config{LookupHost: resolver(addresses...)}), atHost(s.cc, "ext.example"))
		}
	}
	// If all fail, the text is the same wherever one starts.
	r := newREST(t, Config{LookupHost: resolver("127.0.0.9", "169.254.0.1")})
	for range 3 {
		m, err := call(t.Context(), r, newCall(atHost(s.cc, "ext.example")))
		wantError(t, "two faults", m, err, hook.Unreachable,
			`handler "v.acme": call extension: address of the host is link-local, where extensions are not allowed`)
	}
}

// Services of the cluster are called past the proxy.
func TestInClusterServicesAreNotProxied(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	var tunnels, code atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		tunnels.Add(1)
		if c := code.Load(); c != 0 {
			w.WriteHeader(int(c))
			return
		}
		if req.Method != http.MethodConnect {
			t.Errorf("the proxy got %s", req.Method)
		}
		tunnel(t, w, req.Host)
	}))
	t.Cleanup(proxy.Close)
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Proxy: http.ProxyURL(u)}

	inCluster := s.cc
	inCluster.InCluster = true
	mustCall(t, newREST(t, config), inCluster)
	if n := tunnels.Load(); n != 0 {
		t.Errorf("a service of the cluster was called through the proxy")
	}

	r := newREST(t, config)
	mustCall(t, r, s.cc)
	if n := tunnels.Load(); n != 1 {
		t.Errorf("an extension elsewhere was called past the proxy: %d tunnels", n)
	}
	mustCall(t, r, inCluster) // must not use the connection through the proxy
	if n := s.seen(http.StateNew); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}

	code.Store(http.StatusForbidden)
	m, err := call(t.Context(), newREST(t, config), newCall(s.cc))
	wantError(t, "a proxy that does not want", m, err, hook.Unreachable,
		`handler "v.acme": call extension: proxy answered 403 Forbidden`)

	if reflect.ValueOf(NewREST(withHooks(Config{})).config.Proxy).Pointer() != reflect.ValueOf(http.ProxyFromEnvironment).Pointer() {
		t.Error("without a Proxy, it is not the environment that says which")
	}
}

// tunnel connects the client of a proxy to an address.
func tunnel(t *testing.T, w http.ResponseWriter, address string) {
	up, err := net.Dial("tcp", address)
	if err != nil {
		t.Errorf("proxy: %v", err)
		return
	}
	down, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Errorf("proxy: %v", err)
		return
	}
	_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{up, down}, {down, up}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		})
	}
	both.Wait()
}
