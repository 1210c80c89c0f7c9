// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/registry"
)

// registerGateway registers inner with f as any extension is: by discovery, with its checks.
func (f *fixture) registerGateway(t *testing.T, name string, inner *httptest.Server) {
	t.Helper()
	client := extension.NewREST(extension.Config{Catalog: allHooks, Codec: mandated})
	defer client.Close()
	reg := registry.Registration{Name: name, ClientConfig: registry.ClientConfig{
		URL: inner.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: inner.Certificate().Raw}),
	}}
	found, err := client.Discover(t.Context(), reg.ClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Skipped) > 0 {
		t.Errorf("discovery of a gateway skips %v", found.Skipped)
	}
	reg.Handlers = found.Handlers
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
}

// A gateway is an extension itself: one behind another is discovered, called and understood like any other.
func TestGatewaysChain(t *testing.T) {
	inner, outer := newFixture(t, nil), newFixture(t, nil)
	callIDs := make(chan string, 1)
	inner.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
		callIDs <- r.Header.Get(CallIDHeader)
		_, _ = fmt.Fprint(w, `{"status":"Success","message":"wait for the network","retryAfterSeconds":7,"hint":1}`)
	})
	outer.registerGateway(t, "sidecar", inner.rest)

	resp := outer.post(t, createPath, createBody)
	want := `{"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",` +
		`"status":"Success","message":"wait for the network","retryAfterSeconds":7,"hint":1}`
	if resp.code != http.StatusOK || string(resp.body) != want {
		t.Errorf("got %s: %s\nwant %s", resp.status, resp.body, want)
	}
	if got := <-callIDs; got != resp.header.Get(CallIDHeader) {
		t.Errorf("the extension saw call %q, the caller %q", got, resp.header.Get(CallIDHeader))
	}
}

// The outer gateway reports failures behind the inner one by handler; the inner timeout is reached first.
func TestFailuresComeThroughAChain(t *testing.T) {
	inner, outer := newFixture(t, nil), newFixture(t, nil)
	inner.register(t, "GeneratePatches", hook.Fail, time.Second, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	outer.registerGateway(t, "sidecar", inner.rest)
	e, ok := outer.registry.Snapshot().Handler("v--acme.sidecar")
	if !ok || e.Handler.Timeout <= time.Second {
		t.Fatalf("the outer gateway waits for %s, not longer than the inner one", e.Handler.Timeout)
	}
	// A busy machine may take longer than the difference.
	outer.registry.SetPolicies("sidecar", registry.Policies{All: &policy.Policy{Timeout: 30 * time.Second}})
	resp := outer.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/v--acme.sidecar", `{"items":[]}`)
	// The inner gateway's 504 is an answer other than 200 to the outer one, which names its own handler.
	if resp.code != http.StatusBadGateway || !strings.Contains(string(resp.body), `handler \"v--acme.sidecar\": call extension: answered 504 Gateway Timeout`) {
		t.Errorf("got %s: %s", resp.status, resp.body)
	}
	outer.rest.Close()
	if !strings.Contains(outer.log.String(), "no answer within its timeout of 1s") {
		t.Errorf("the outer log lacks the inner cause:\n%s", outer.log)
	}
}
