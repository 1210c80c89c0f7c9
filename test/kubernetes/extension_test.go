// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
)

// serverOf is an extension on loopback, with the names of Services in its certificate.
type serverOf struct {
	*httptest.Server
	pair      atomic.Pointer[devcert.Pair]
	discovery atomic.Int64 // how often it was asked
	seen      sync.Map     // by handler: the body of the last request

	mu       sync.Mutex
	handlers []runtimehooksv1.ExtensionHandler
	answer   func(body []byte) any // to what is not discovery; nil for success of BeforeClusterCreate
	broken   bool                  // answers 500
	hangs    bool                  // never answers
}

// handler returns an entry of discovery's list of handlers.
func handler(name, hook string) runtimehooksv1.ExtensionHandler {
	return runtimehooksv1.ExtensionHandler{
		Name:        name,
		RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook},
	}
}

// newExtension starts an extension with handlers of BeforeClusterCreate.
func newExtension(t testing.TB, names ...string) *serverOf {
	t.Helper()
	s := &serverOf{}
	for _, n := range names {
		s.handlers = append(s.handlers, handler(n, "BeforeClusterCreate"))
	}
	s.renew(t)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are part of the tests
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.pair.Load().ServerTLS() }}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// renew gives the extension a certificate of a new CA, and returns the CA.
func (s *serverOf) renew(t testing.TB) []byte {
	t.Helper()
	pair := certificates.New(t, "extension.default.svc")
	s.pair.Store(pair)
	return pair.CAPEM
}

func (s *serverOf) ca() []byte { return s.pair.Load().CAPEM }

func (s *serverOf) set(change func(*serverOf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *serverOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handlers, broken, hangs, answers := s.handlers, s.broken, s.hangs, s.answer
	s.mu.Unlock()
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/discovery"):
		s.discovery.Add(1)
		list := &runtimehooksv1.DiscoveryResponse{Handlers: handlers}
		list.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
		list.Status = runtimehooksv1.ResponseStatusSuccess
		answer = list
	default:
		body, _ := io.ReadAll(r.Body) // the caller may have left
		s.seen.Store(path.Base(r.URL.Path), string(body))
		if answers != nil {
			answer = answers(body)
			break
		}
		ok := &runtimehooksv1.BeforeClusterCreateResponse{}
		ok.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("BeforeClusterCreateResponse"))
		ok.Status = runtimehooksv1.ResponseStatusSuccess
		answer = ok
	}
	if hangs {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices when the caller leaves
		<-r.Context().Done()
		return
	}
	if broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the caller may have left
}

// lookup resolves Services of the cluster to loopback, where the extensions are.
func lookup(_ context.Context, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(host, ".svc") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
