// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
)

// diagnosticsMux serves /metrics, /healthz and /readyz.
func (s *Server) diagnosticsMux() http.Handler {
	mux := s.healthMux()
	mux.Handle("GET /metrics", s.config.Metrics)
	return mux
}

// healthMux serves /healthz (the process runs) and /readyz (it accepts calls).
func (s *Server) healthMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case s.draining.Load():
			http.Error(w, "not ready: shutting down", http.StatusServiceUnavailable)
		case !isClosed(s.config.Ready):
			http.Error(w, "not ready: "+s.config.Unready(), http.StatusServiceUnavailable)
		default:
			_, _ = fmt.Fprintln(w, "ok")
		}
	})
	return mux
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
