// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Scrapes returns a handler that serves the metrics of g to one scraper after the other. With 20,000 handlers, a scrape
// takes a second of a processor, and memory while it lasts, which several at the same time would take from calls. A
// scraper waits as long as it likes, unless limits.Scrapes wait already. One that does not read its answer within
// limits.ScrapeTimeout has its connection closed, so that the next one has its turn.
func Scrapes(g prometheus.Gatherer) http.Handler {
	return inTurn(promhttp.HandlerFor(g, promhttp.HandlerOpts{}), limits.ScrapeTimeout)
}

// inTurn calls next for one request after the other, each of which has so much time to read its answer.
func inTurn(next http.Handler, timeout time.Duration) http.Handler {
	turn, waiting := make(chan struct{}, 1), make(chan struct{}, limits.Scrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case waiting <- struct{}{}:
			defer func() { <-waiting }()
		default:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many requests at the same time: send fewer", http.StatusServiceUnavailable)
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-r.Context().Done():
			return
		}
		// A writer without deadlines, as in tests, has a reader that does not stall either. The next request of the
		// connection begins without a deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
		next.ServeHTTP(w, r)
	})
}
