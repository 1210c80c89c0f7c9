// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestScrapesTakeTurns checks that one scrape is served at a time, that others wait, that those beyond the limit are
// refused, and that a scraper that leaves gives its place to another.
func TestScrapesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var serving, most atomic.Int32
		release := make(chan struct{})
		handler := inTurn(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), serving.Add(1)))
			<-release
			serving.Add(-1)
		}), time.Minute)
		scrape := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
			return w
		}
		leaving, leave := context.WithCancel(t.Context())
		var scrapes sync.WaitGroup
		for range limits.Scrapes - 1 {
			scrapes.Go(func() { scrape(t.Context()) })
		}
		synctest.Wait()
		scrapes.Go(func() { scrape(leaving) })
		synctest.Wait()
		if w := scrape(t.Context()); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one scrape beyond the limit: %d %v", w.Code, w.Header())
		}
		leave()
		synctest.Wait()
		scrapes.Go(func() {
			if w := scrape(t.Context()); w.Code != http.StatusOK {
				t.Errorf("a scrape in place of one that left: %d", w.Code)
			}
		})
		synctest.Wait()
		close(release)
		scrapes.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d scrapes were served at the same time", n)
		}
	})
}

// TestStalledScraperLosesItsTurn checks that a scraper that reads nothing does not keep others from their metrics.
func TestStalledScraperLosesItsTurn(t *testing.T) {
	began := make(chan struct{}, 1)
	large := make([]byte, 1<<20)
	server := httptest.NewServer(inTurn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.URL.RawQuery == "all" { // more than any socket buffers
			if _, err := w.Write(large); err != nil {
				return
			}
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}), 100*time.Millisecond))
	t.Cleanup(server.Close)
	stalled, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stalled.Close() }()
	if _, err := stalled.Write([]byte("GET /metrics?all HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-began
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
