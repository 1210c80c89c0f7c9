// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hookgate/hookgate/internal/limits"
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
		}))
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
