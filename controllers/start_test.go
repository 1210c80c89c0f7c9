// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/controllers"
)

// A replica that starts serves the handlers in the statuses before it asks any extension, asks each once, and writes
// nothing if the answers are the same.
func TestAStartAsksEachExtensionOnceAndWritesNothing(t *testing.T) {
	const n = 600
	api := newAPIServer(t)
	first := start(t, api, nil)
	for i := range n {
		api.register(fmt.Sprintf("x%03d", i), nil)
	}
	for i := range n {
		api.awaitDiscovered(t, fmt.Sprintf("x%03d", i))
	}
	first.stop()
	before := len(api.written())

	r := start(t, api, func(c *controllers.Config) { c.Concurrency = 50 })
	if got := len(r.served()); got != n {
		t.Errorf("%d handlers are served when the replica is ready, want %d", got, n)
	}
	eventually(t, "each extension is asked", func() (string, bool) {
		got := len(r.extensions.calls())
		return strconv.Itoa(got), got >= n
	})
	// What is left to reconcile now comes before another ExtensionConfig.
	api.register("last", nil)
	api.awaitDiscovered(t, "last")
	asked := map[string]int{}
	for _, c := range r.extensions.calls() {
		asked[c.URL]++
	}
	for url, times := range asked {
		if times > 1 {
			t.Errorf("%s was asked %d times", url, times)
		}
	}
	if got := slices.DeleteFunc(requests(api.written()[before:]), func(w string) bool { return strings.HasPrefix(w, "PATCH last") }); len(got) > 0 {
		t.Errorf("the start wrote %d times: %v", len(got), got[:min(5, len(got))])
	}
}
