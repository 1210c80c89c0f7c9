// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// An extension that is down, answers garbage, is not trusted or has a bad manifest does not affect the others.
func TestBrokenExtensionsDoNotAffectOthers(t *testing.T) {
	process.Program(t, gatewayVariable)
	a, stranger := newAuthority(t), newAuthority(t)
	good, rubbish, untrusted := startStub(t, a), startStub(t, a), startStub(t, stranger)
	rubbish.answers[path("Discovery", "")] = say("<html>")
	g := startGateway(t, a, map[string]string{
		"a-down.yaml": registration{name: "down",
			url: "https://127.0.0.1:" + strconv.Itoa(process.FreePort(t))}.manifest(a),
		"b-rubbish.yaml":   registration{name: "rubbish", url: rubbish.server.URL}.manifest(a),
		"c-untrusted.yaml": registration{name: "untrusted", url: untrusted.server.URL}.manifest(a),
		"d-broken.yaml":    "kind: [",
		"e-good.yaml":      registration{name: "good", url: good.server.URL}.manifest(a),
	})
	g.awaitHandler(t, "ready--good")
	_, handlers := g.discovery(t)
	for _, h := range handlers {
		if strings.Contains(h.Name, "--") && h.Name != "ready--good" {
			t.Errorf("discovery lists handler %q of an extension that was never discovered", h.Name)
		}
	}
	for _, name := range []string{"down", "rubbish", "untrusted"} {
		g.Expect(t, regexp.QuoteMeta(name)) // each is reported
	}
	select {
	case <-g.Exited():
		t.Error("the gateway exited")
	default:
	}
}

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
