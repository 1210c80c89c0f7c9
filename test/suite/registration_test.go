// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"net/http"
	"testing"

	"k8s.io/utils/ptr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/samples"
)

// Discovery is repeated, so the new handlers of an extension upgraded behind the same URL become known.
func TestResyncFindsNewHandlers(t *testing.T) {
	g, s := startStubs(t, func(*stub) {}, "--resync", "200ms")
	s.serve("GeneratePatches", "new", handlerOptions{}, say(`{"status":"Success"}`))
	g.awaitHandler(t, "new--s")
}

// A registration that cannot be used leaves the previous one in place.
func TestBadUpdatesKeepTheOldHandlers(t *testing.T) {
	g, s := startStubs(t, func(s *stub) {
		s.serve("GeneratePatches", "patch", handlerOptions{}, say(`{"status":"Success"}`))
	}, "--resync", "200ms")
	g.awaitHandler(t, "patch--s")
	served := make(chan struct{}, 1024)
	bad, err := json.Marshal(runtimehooksv1.DiscoveryResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess},
		Handlers: []runtimehooksv1.ExtensionHandler{{
			Name: "other", TimeoutSeconds: ptr.To[int32](3600),
			RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(),
				Hook: "GeneratePatches"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.answers[path("Discovery", "")] = func(w http.ResponseWriter, r *http.Request) {
		say(string(bad))(w, r)
		served <- struct{}{}
	}
	s.mu.Unlock()
	for range 3 { // the third request shows that the first response was processed
		<-served
	}
	t.Run("refused discovery", func(t *testing.T) {
		if !g.offers(t, "patch--s") || g.offers(t, "other--s") {
			t.Error("the old handlers are gone, or the bad one is offered")
		}
	})
	t.Run("refused manifest", func(t *testing.T) {
		g.write(t, "s.yaml", "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: s\nspec:\n  clientConfig:\n    url: ftp://nowhere\n")
		g.Expect(t, `s\.yaml:7\b`)
		if !g.offers(t, "patch--s") {
			t.Error("the old handlers are gone")
		}
		if got := g.post(t, path("GeneratePatches", "patch--s"), samples.Body("GeneratePatches")); got.code != http.StatusOK {
			t.Errorf("status %d: %s", got.code, got.body)
		}
	})
}
