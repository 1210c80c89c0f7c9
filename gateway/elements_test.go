// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	patchesPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches"
	// tooMany is what an error says of a message with too many elements.
	tooMany = "has more than 100000 list elements, map entries and unknown members in total"
)

// emptyItems returns the JSON of n empty items.
func emptyItems(n int) string {
	return `{"items":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}`
}

// A request with more elements than one may have is refused; TestBombsAllocateLittle has those that are small on the wire.
func TestRequestsWithTooManyElements(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	for n, want := range map[int]hook.Kind{limits.Elements: hook.UnknownHandler, limits.Elements + 1: hook.TooLarge} {
		resp := f.post(t, patchesPath+"/v.acme", emptyItems(n))
		kind, text := resp.header.Get(ErrorKindHeader), `"message":"request `+tooMany
		if kind != want.String() || strings.Contains(string(resp.body), text) != (want == hook.TooLarge) {
			t.Errorf("%d items: got %s %s: %s", n, resp.status, kind, resp.body)
		}
	}
}

// A name of a handler that is longer than any may be is not repeated.
func TestHandlersWithLongNames(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	for n, long := range map[int]bool{limits.NameBytes: false, limits.NameBytes + 1: true} {
		resp := f.post(t, createPath+"/"+strings.Repeat("n", n), createBody)
		if resp.code != http.StatusNotFound || strings.Contains(string(resp.body), "names have at most 512 bytes") != long {
			t.Errorf("a name of %d bytes: got %s: %.300s", n, resp.status, resp.body)
		}
		if long && len(resp.body) > 500 {
			t.Errorf("a name of %d bytes is answered with %d bytes", n, len(resp.body))
		}
	}
}

// An answer with too many elements is BadResponse, and none of it reaches the caller.
func TestAnswersWithTooManyElements(t *testing.T) {
	f := newFixture(t, nil)
	answer := `{"status":"Success",` + emptyItems(limits.BodyBytes/3 - 20)[1:]
	f.register(t, "GeneratePatches", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, answer)
	})
	resp := f.post(t, patchesPath+"/v.acme", `{}`)
	if resp.code != http.StatusBadGateway || !strings.Contains(string(resp.body), "answer: "+tooMany) || len(resp.body) > 500 {
		t.Errorf("got %s: %.300s", resp.status, resp.body)
	}
}
