// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/webhook"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/hookversions"
)

// newOutdatedServer starts an API server that calls the webhooks of a gateway with removed and deprecated versions of
// hooks, which no release has yet.
func newOutdatedServer(t *testing.T) *webhookServer {
	t.Helper()
	s, _ := newWebhookClient(t, hookgateGroup)
	s.pair = certificates.New(t)
	tls := certificates.Server(t, s.pair)
	logger := slog.New(slog.DiscardHandler)
	handler, err := webhook.New(webhook.Config{Group: hookgateGroup, Logger: logger, Catalog: hookversions.New()})
	if err != nil {
		t.Fatal(err)
	}
	server := servers.NewSide(servers.SideConfig{Name: "webhooks", Address: "127.0.0.1:0", TLS: tls, Handler: handler,
		Logger: logger})
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // what tests leave is deleted with the webhooks' help
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.register(t, hookgateGroup, "https://"+server.Addr().String())
	s.warned()
	return s
}

// withHandler returns an ExtensionConfig with a known handler of a hook in the given version of the group.
func withHandler(t *testing.T, extensionConfigVersion, name, hookVersion, metadata string) *unstructured.Unstructured {
	t.Helper()
	return object(t, configManifest(extensionConfigVersion, "name: "+name+metadata,
		`clientConfig: {url: "https://a.example.com"}`)+
		"status: {handlers: [{name: h."+name+", requestHook: {apiVersion: hooks.test.hookgate.dev/"+hookVersion+", hook: BeforeNodeDrain}}]}\n")
}

// TestOutdatedHookVersions: a real API server sends the status of a creation to one webhook, and the status of an
// update to both.
func TestOutdatedHookVersions(t *testing.T) {
	s := newOutdatedServer(t)
	deprecated := func(name string) string {
		return "status.handlers: h." + name + ": hooks of hooks.test.hookgate.dev/v1alpha1 are deprecated since release v0.4.0 of the gateway: " +
			"upgrade the extension to a version that implements hooks of hooks.test.hookgate.dev/v1"
	}
	warned := func(t *testing.T, want int, text string) {
		t.Helper()
		n := 0
		for _, w := range s.warned() {
			if strings.Contains(w, "status.handlers") && strings.Contains(w, text) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d warnings of %q, want %d", n, text, want)
		}
	}
	for _, version := range []string{"v1beta2", "v1alpha1"} {
		err := s.Create(t.Context(), withHandler(t, version, "removed-"+version, "v0alpha1", ""))
		if !apierrors.IsInvalid(err) || !strings.Contains(refusal(t, err), "status.handlers: Forbidden: the gateway can call none of the handlers") {
			t.Errorf("creation in %s with removed versions only: %v", version, err)
		}
		create(t, s, withHandler(t, version, "deprecated-"+version, "v1alpha1", ""))
		warned(t, 1, deprecated("deprecated-"+version))
	}
	create(t, s, withHandler(t, "v1beta2", "current", "v1beta1", ""))
	warned(t, 0, "")
	create(t, s, withHandler(t, "v1beta2", "paused", "v0alpha1", ", annotations: {cluster.x-k8s.io/paused: ''}"))
	warned(t, 1, "were removed in release v0.3.0")

	// The status that the leader wrote is checked with the next change.
	for name, hookVersion := range map[string]string{"old": "v0alpha1", "aged": "v1alpha1"} {
		o := object(t, configManifest("v1beta2", "name: "+name, `clientConfig: {url: "https://a.example.com"}`))
		create(t, s, o)
		o.Object["status"] = withHandler(t, "v1beta2", name, hookVersion, "").Object["status"]
		if err := s.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		warned(t, 0, "")
	}
	change := func(name string, fields ...string) error {
		o := s.as(t, "v1beta2", name)
		if err := unstructured.SetNestedField(o.Object, fields[len(fields)-1], fields[:len(fields)-1]...); err != nil {
			t.Fatal(err)
		}
		return s.Update(t.Context(), o)
	}
	if err := change("aged", "spec", "settings", "a", "b"); err != nil {
		t.Error(err)
	}
	warned(t, 1, deprecated("aged"))
	if err := change("old", "spec", "settings", "a", "b"); !apierrors.IsInvalid(err) {
		t.Errorf("update with removed versions only: %v, want that it is invalid", err)
	}
	for _, fields := range [][]string{{"metadata", "labels", "a", "b"}, {"metadata", "annotations", "cluster.x-k8s.io/paused", ""}, {"spec", "clientConfig", "url", "https://b.example.com"}} {
		if err := change("old", fields...); err != nil {
			t.Errorf("update of %v: %v", fields, err)
		}
	}
	if err := s.Delete(t.Context(), s.as(t, "v1beta2", "old")); err != nil {
		t.Errorf("deletion: %v", err)
	}
}
