// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookgate/hookgate/internal/limits"
)

// Scrapes returns a handler that serves the metrics of g to one scraper after the other. With 20,000 handlers, a scrape
// takes a second of a processor, and memory while it lasts, which several at the same time would take from calls. A
// scraper waits as long as it likes, unless limits.Scrapes wait already.
func Scrapes(g prometheus.Gatherer) http.Handler {
	return inTurn(promhttp.HandlerFor(g, promhttp.HandlerOpts{}))
}

// inTurn calls next for one request after the other.
func inTurn(next http.Handler) http.Handler {
	turn, waiting := make(chan struct{}, 1), make(chan struct{}, limits.Scrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case waiting <- struct{}{}:
			defer func() { <-waiting }()
		default:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many scrapes at the same time: scrape less often", http.StatusServiceUnavailable)
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-r.Context().Done():
			return
		}
		next.ServeHTTP(w, r)
	})
}
