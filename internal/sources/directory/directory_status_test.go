// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
)

// Handlers in the status of a manifest are served, and the registry is ready, while the extension has not answered
// yet. Its answer replaces them.
func TestDirectoryServesTheStatusBeforeDiscovery(t *testing.T) {
	s := newSource(t, nil)
	answer := make(chan struct{})
	s.Extensions.Set(urlA, func(ctx context.Context) (extension.Discovered, error) {
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return extension.Discovered{Handlers: discoverytest.Handlers("v", "w")}, ctx.Err()
	})
	writeFile(t, s.dir, "a.yaml", config("acme", urlA, "status:", "  handlers:", "  - name: v.acme",
		"    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}"))
	writeFile(t, s.dir, "p.yaml", policyOf("p", "{name: acme}", "timeoutSeconds: 3"))
	s.directory.patience = time.Hour
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "3s"})
	close(answer)
	s.eventuallyServes(t, "v.acme "+urlA, "w.acme "+urlA)
}

// An ExtensionConfig without a status is waited for, however many others have one.
func TestDirectoryWaitsForExtensionsWithoutStatus(t *testing.T) {
	s := newSource(t, nil)
	began, answer := make(chan struct{}), make(chan struct{})
	s.Extensions.Set(urlB, func(context.Context) (extension.Discovered, error) {
		close(began)
		<-answer
		return extension.Discovered{Handlers: discoverytest.Handlers("w")}, nil
	})
	s.Extensions.Hang(urlA)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA, "status:", "  handlers:", "  - name: v.acme",
		"    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}"))
	writeFile(t, s.dir, "b.yaml", config("other", urlB))
	s.directory.patience = time.Hour
	s.run(t)
	<-began
	s.eventuallyServes(t, "v.acme "+urlA)
	if s.Registry.Snapshot().Ready() {
		t.Error("the registry is ready although an extension of which nothing is known was not asked yet")
	}
	close(answer)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA, "w.other "+urlB)
}
