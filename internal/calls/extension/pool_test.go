// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/registry"
)

// held is an extension whose calls wait until they are let go.
type held struct {
	*server
	arrived chan struct{}
	release chan struct{}
}

func newHeld(t *testing.T, a *devcert.Authority, h2 bool) *held {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 10), release: make(chan struct{})}
	h.server = newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
		h.arrived <- struct{}{}
		select {
		case <-h.release:
		case <-t.Context().Done():
		}
		answer(success)(w, req)
	}, func(s *httptest.Server) { s.EnableHTTP2 = h2 })
	return h
}

// begin starts a call and returns when it has arrived. The channel gets its error.
func (h *held) begin(t *testing.T, r *REST, cc registry.ClientConfig) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := r.Call(t.Context(), newCall(cc))
		done <- err
	}()
	select {
	case <-h.arrived:
	case err := <-done:
		t.Fatalf("Call: %v", err)
	}
	return done
}

func TestOldConnectionsDrainAfterCertificateRotation(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP1", true: "HTTP2"}[h2], func(t *testing.T) {
			a, b := newAuthority(t), newAuthority(t)
			s := newHeld(t, a, h2)
			r := newREST(t, Config{PreferHTTP2: h2})
			idle, busy := s.begin(t, r, s.cc), s.begin(t, r, s.cc)
			s.release <- struct{}{}
			select { // one of the two, we do not know which
			case err := <-idle:
				idle = busy
				if err != nil {
					t.Fatal(err)
				}
			case err := <-busy:
				if err != nil {
					t.Fatal(err)
				}
			}
			busy = idle

			// The extension has new certificates: its ExtensionConfig has both authorities now.
			rotated := s.cc
			rotated.CABundle = slices.Concat(a.PEM, b.PEM)
			r.Retain([]registry.ClientConfig{rotated})
			if !h2 {
				s.await(t, http.StateClosed, 1) // the idle connection
			}
			select {
			case err := <-busy:
				t.Fatalf("the call under way ended: %v", err)
			default:
			}

			fresh := s.begin(t, r, rotated)
			close(s.release)
			for _, done := range []<-chan error{busy, fresh} {
				if err := <-done; err != nil {
					t.Errorf("Call: %v (%v)", err, errors.Unwrap(err))
				}
			}
			old := 2
			s.await(t, http.StateClosed, old)
			mustCall(t, r, rotated)
			if open := s.seen(http.StateNew) - s.seen(http.StateClosed); open < 1 {
				t.Errorf("%d connections left, want those to the new configuration", open)
			}
			if n := s.seen(http.StateClosed); n != old {
				t.Errorf("%d connections closed, want %d", n, old)
			}
		})
	}
}

func TestOldConnectionsAreReplaced(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP1", true: "HTTP2"}[h2], func(t *testing.T) {
			s := newHeld(t, newAuthority(t), h2)
			var passed atomic.Int64
			r := newREST(t, Config{PreferHTTP2: h2, MaxConnectionAge: time.Minute})
			r.now = func() time.Time { return time.Unix(0, passed.Load()) }
			close(s.release)
			for range 10 {
				mustCall(t, r, s.cc)
				<-s.arrived
			}
			want := 1
			if h2 {
				want = http2Connections
			}
			if n := s.seen(http.StateNew); n != want {
				t.Fatalf("%d connections for calls one after the other, want %d", n, want)
			}

			s.release = make(chan struct{})
			busy := s.begin(t, r, s.cc)
			passed.Add(int64(time.Minute))
			fresh := s.begin(t, r, s.cc)
			if n := s.seen(http.StateNew); n != want+1 {
				t.Errorf("%d connections when the first are too old, want %d", n, want+1)
			}
			s.release <- struct{}{}
			s.release <- struct{}{}
			for _, done := range []<-chan error{busy, fresh} {
				if err := <-done; err != nil {
					t.Errorf("Call: %v (%v)", err, errors.Unwrap(err))
				}
			}
			s.await(t, http.StateClosed, want)
			if n := s.seen(http.StateClosed); n != want {
				t.Errorf("%d connections closed, want the %d old ones", n, want)
			}
		})
	}
}

func TestConnectionsAreSharedByHostAndAuthority(t *testing.T) {
	a := newAuthority(t)
	s := newServer(t, a, answer(success), nil)
	r := newREST(t, Config{})
	other, prefixed, inCluster := s.cc, s.cc, s.cc
	other.CABundle = slices.Concat(a.PEM, a.PEM)
	prefixed.URL += "/prefix"
	inCluster.InCluster = true
	for _, cc := range []registry.ClientConfig{s.cc, prefixed, s.cc, other, inCluster, other} {
		mustCall(t, r, cc)
	}
	if n := s.seen(http.StateNew); n != 3 {
		t.Errorf("%d connections, want 3: the prefix does not matter, authority and place do", n)
	}
	r.Retain([]registry.ClientConfig{prefixed})
	s.await(t, http.StateClosed, 2)
	mustCall(t, r, prefixed)
	mustCall(t, r, s.cc)
	if n := s.seen(http.StateNew); n != 3 {
		t.Errorf("%d connections, want 3: the one that another URL still uses stays", n)
	}
	r.Close()
	s.await(t, http.StateClosed, 3)
	mustCall(t, r, s.cc) // a new start
}

// TestRetainDuringCalls takes the ground from under calls all the time. None of them may notice.
func TestRetainDuringCalls(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		s := newServer(t, newAuthority(t), answer(success), func(s *httptest.Server) { s.EnableHTTP2 = true })
		r := newREST(t, Config{PreferHTTP2: h2, MaxConnectionAge: 5 * time.Millisecond})
		var callers, retainer sync.WaitGroup
		stop := make(chan struct{})
		retainer.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				if i%2 == 0 {
					r.Retain(nil)
				} else {
					r.Retain([]registry.ClientConfig{s.cc})
				}
			}
		})
		for range 4 {
			callers.Go(func() {
				for range 25 {
					if _, err := r.Call(t.Context(), newCall(s.cc)); err != nil {
						t.Errorf("HTTP/2 %t: Call: %v (%v)", h2, err, errors.Unwrap(err))
						return
					}
				}
			})
		}
		callers.Wait()
		close(stop)
		retainer.Wait()
		r.Close()
		s.await(t, http.StateClosed, s.seen(http.StateNew))
	}
}

// As many calls at the same time as there may be idle connections need no handshake the second time. One call more has
// a connection made, and one is closed.
func TestIdleConnectionsAreKept(t *testing.T) {
	for name, tc := range map[string]struct{ configured, kept int }{
		"Configured": {3, 3},
		// More calls than an extension has in flight without a policy, of several extensions on one host.
		"Default": {0, 300},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHeld(t, newAuthority(t), false)
			r := newREST(t, Config{MaxIdleConnections: tc.configured})
			together := func(calls int) {
				t.Helper()
				var under []<-chan error
				for range calls {
					under = append(under, s.begin(t, r, s.cc))
				}
				for range calls {
					s.release <- struct{}{}
				}
				for _, done := range under {
					if err := <-done; err != nil {
						t.Fatalf("Call: %v", err)
					}
				}
			}
			together(tc.kept)
			together(tc.kept)
			if n := s.seen(http.StateNew); n != tc.kept {
				t.Errorf("%d connections for %d calls at the same time, twice", n, tc.kept)
			}
			if tc.configured == 0 {
				return
			}
			together(tc.kept + 1)
			s.await(t, http.StateClosed, 1)
			together(tc.kept)
			if made, closed := s.seen(http.StateNew), s.seen(http.StateClosed); made != tc.kept+1 || closed != 1 {
				t.Errorf("%d connections were made and %d closed, want %d and 1", made, closed, tc.kept+1)
			}
		})
	}
}
