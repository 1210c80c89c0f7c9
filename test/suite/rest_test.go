// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// hubSettings returns the settings of the ExtensionConfig: one is new to every request, the other is overridden by the
// request.
func hubSettings() map[string]string {
	return map[string]string{"tier": "silver", "from-config": "größer & <größer>"}
}

// startHub starts the extension program and a gateway that registers it as ExtensionConfig "hub".
func startHub(t *testing.T) (*gateway, *extensionProgram) {
	t.Helper()
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "north", "0")
	g := startGateway(t, a, map[string]string{"hub.yaml": registration{name: "hub", url: e.url,
		settings: hubSettings()}.manifest(a)})
	g.awaitHandler(t, "patches--hub")
	return g, e
}

// checkSame compares an answer of the gateway with the answer to a direct call.
func checkSame(t testing.TB, hook string, got answer, want members) {
	t.Helper()
	if got.code != http.StatusOK {
		t.Fatalf("status %d: %.1000s", got.code, got.body)
	}
	asCaller(t, hook, got.body)
	m := decodeMembers(t, got.body)
	delete(m, "kind")
	delete(m, "apiVersion")
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("the answer differs from the extension's own (-extension +gateway):\n%s", diff)
	}
}

func TestRESTEveryHook(t *testing.T) {
	g, e := startHub(t)
	for _, hook := range samples.Hooks() {
		t.Run(hook, func(t *testing.T) {
			body := samples.Body(hook)
			var all []members
			for _, handler := range handlersOf(hook) {
				want := direct(t, g.client, e.url, hook, handler, withSettings(samples.Request(hook), hubSettings()))
				if !strings.Contains(fmt.Sprint(want["message"]), `from-config=`) {
					t.Fatalf("the extension does not echo its settings: %v", want["message"])
				}
				all = append(all, want)
				t.Run("registered name of "+handler, func(t *testing.T) {
					checkSame(t, hook, g.post(t, path(hook, handler+".hub")+"?timeout=10s", body), want)
				})
				if !samples.Lifecycle(hook) {
					t.Run("label of "+handler, func(t *testing.T) {
						checkSame(t, hook, g.post(t, path(hook, handler+"--hub")+"?timeout=10s", body), want)
					})
				}
			}
			want := all[0]
			if samples.Lifecycle(hook) {
				want = merged(all)
				t.Run("aggregate by name", func(t *testing.T) {
					checkSame(t, hook, g.post(t, path(hook, strings.ToLower(hook))+"?timeout=10s", body), want)
				})
			}
			t.Run("no handler", func(t *testing.T) { checkSame(t, hook, g.post(t, path(hook, "")+"?timeout=10s", body), want) })
		})
	}
}

// The tests above use HTTP/2, as Cluster API does; most other callers do not.
func TestRESTOverHTTP11(t *testing.T) {
	g, e := startHub(t)
	client := http11(t, g.authority)
	for _, hook := range samples.Hooks() {
		handler := handlersOf(hook)[0]
		want := direct(t, client, e.url, hook, handler, withSettings(samples.Request(hook), hubSettings()))
		checkSame(t, hook, post(t, client, "https://"+g.HTTPS+path(hook, handler+".hub"), samples.Body(hook)), want)
	}
	request := samples.GeneratePatches(2000)
	body := samples.Marshal(request)
	want := direct(t, client, e.url, "GeneratePatches", "patches", withSettings(request, hubSettings()))
	checkSame(t, "GeneratePatches", post(t, client, "https://"+g.HTTPS+path("GeneratePatches", "patches--hub"), body),
		want)
}

func TestRESTDiscovery(t *testing.T) {
	g, _ := startHub(t)
	got, handlers := g.discovery(t)
	asCaller(t, "Discovery", got.body)
	hooks := map[string]string{}
	for _, h := range handlers {
		if _, ok := hooks[h.Name]; ok {
			t.Errorf("handler %q is there twice", h.Name)
		}
		hooks[h.Name] = h.RequestHook.Hook
		if h.RequestHook.APIVersion != runtimehooksv1.GroupVersion.String() {
			t.Errorf("handler %q has apiVersion %q", h.Name, h.RequestHook.APIVersion)
		}
		if h.TimeoutSeconds != nil && (*h.TimeoutSeconds < 0 || *h.TimeoutSeconds > 30) {
			t.Errorf("handler %q has timeoutSeconds %d, which Cluster API refuses", h.Name, *h.TimeoutSeconds)
		}
	}
	want := map[string]string{}
	for _, hook := range samples.Hooks() {
		if samples.Lifecycle(hook) {
			want[strings.ToLower(hook)] = hook
			continue
		}
		for _, handler := range handlersOf(hook) {
			want[handler+"--hub"] = hook
		}
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("handlers and their hooks (-want +got):\n%s", diff)
	}
}

func TestRESTSizes(t *testing.T) {
	g, e := startHub(t)
	for name, n := range map[string]int{"M": 100, "L": 2000} {
		t.Run(name, func(t *testing.T) {
			request := samples.GeneratePatches(n)
			body := samples.Marshal(request)
			want := direct(t, g.client, e.url, "GeneratePatches", "patches", withSettings(request, hubSettings()))
			checkSame(t, "GeneratePatches", g.post(t, path("GeneratePatches", "patches--hub")+"?timeout=30s", body),
				want)
		})
	}
}

// Concurrent callers each get the answer to their own request.
func TestRESTConcurrentCallers(t *testing.T) {
	g, e := startHub(t)
	var wg sync.WaitGroup
	for caller := range 16 {
		hook := samples.Hooks()[caller]
		handler := handlersOf(hook)[0]
		request := func() runtimehooksv1.RequestObject {
			return withSettings(samples.Request(hook), map[string]string{"caller": strconv.Itoa(caller)})
		}
		body := samples.Marshal(request())
		want := direct(t, g.client, e.url, hook, handler, withSettings(request(), hubSettings()))
		wg.Go(func() {
			for range 20 {
				got, err := try(g.client, "https://"+g.HTTPS+path(hook, handler+".hub"), body)
				var m members
				if err == nil {
					err = json.Unmarshal(got.body, &m)
				}
				if err != nil || got.code != http.StatusOK || m["message"] != want["message"] {
					t.Errorf("caller %d: %v, status %d, message %v, want %v", caller, err, got.code, m["message"],
						want["message"])
					return
				}
			}
		})
	}
	wg.Wait()
}
