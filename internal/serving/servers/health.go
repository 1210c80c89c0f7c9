// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/recording"
)

// diagnosticsMux serves /metrics, /status, /recording, /healthz, /readyz, and the page for people.
func (s *Server) diagnosticsMux() http.Handler {
	mux := s.healthMux()
	mux.Handle("GET /metrics", s.config.Metrics)
	if s.config.Status != nil {
		mux.Handle("GET "+status.Path, s.config.Status)
	}
	if s.config.Recording != nil {
		mux.Handle("POST "+recording.Path, s.config.Recording)
	}
	if s.config.Console != nil {
		mux.Handle("GET /", s.config.Console)
	}
	return SameSite(mux)
}

// healthMux serves /healthz (the process runs) and /readyz (it accepts calls).
func (s *Server) healthMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	return mux
}

// readyz says whether the gateway accepts calls. With ?verbose, it lists all that it looks at, in the form that
// Kubernetes' own servers use: [+] is well, [-] is why calls are not accepted, and [!] needs attention.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	reason := ""
	switch {
	case s.draining.Load():
		reason = "shutting down"
	case !isClosed(s.config.Ready):
		reason = s.config.Unready()
	}
	text := "ok\n"
	if reason != "" {
		text = "not ready: " + reason + "\n"
	}
	if r.URL.Query().Has("verbose") {
		text = s.verbose(reason)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if reason != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text)
}

func (s *Server) verbose(reason string) string {
	var b strings.Builder
	verdict := "passed"
	if reason == "" {
		b.WriteString("[+]registrations ok\n")
	} else {
		fmt.Fprintf(&b, "[-]registrations failed: %s\n", reason)
		verdict = "failed"
	}
	if s.config.Notices != nil {
		for _, n := range s.config.Notices() {
			switch {
			case n.Text == "":
				fmt.Fprintf(&b, "[+]%s ok\n", n.Name)
			case len(n.Details) > 0: // probes need no credentials
				fmt.Fprintf(&b, "[!]%s: %s; see the log, or hookgate get extensions\n", n.Name, n.Text)
			default:
				fmt.Fprintf(&b, "[!]%s: %s\n", n.Name, n.Text)
			}
		}
	}
	return b.String() + "readyz check " + verdict + "\n"
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
