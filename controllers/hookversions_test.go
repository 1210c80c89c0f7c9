// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// outdatedHooks is a catalog with a version that was removed, one that is deprecated, and one that is new.
func outdatedHooks(t *testing.T) *catalog.Catalog {
	t.Helper()
	files := []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_lifecycle_hooks_proto}
	c, err := catalog.Build([]catalog.Release{{Version: "v0.1.0", Date: "2026-01-01"}, {Version: "v0.2.0"}},
		catalog.Source{Group: hook.Group, Version: "v1alpha0", Lifetime: catalog.Lifetime{Introduced: "v0.1.0", Deprecated: "v0.1.0", Removed: "v0.2.0"}},
		catalog.Source{Group: hook.Group, Version: hook.Version, Lifetime: catalog.Lifetime{Introduced: "v0.1.0", Deprecated: "v0.2.0"}, Files: files},
		catalog.Source{Group: hook.Group, Version: "v1beta1", Lifetime: catalog.Lifetime{Introduced: "v0.2.0"}, Files: files},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	allRemoved = "status.handlers: Forbidden: the gateway can call none of the handlers: hooks of hooks.runtime.cluster.x-k8s.io/v1alpha0 were removed in release v0.2.0 of the gateway; " +
		"upgrade the extension to one that implements hooks of hooks.runtime.cluster.x-k8s.io/v1beta1, and leave out the status of the old one"
	oneDeprecated = "status.handlers: new.acme: hooks of hooks.runtime.cluster.x-k8s.io/v1alpha1 are deprecated since release v0.2.0 of the gateway: " +
		"upgrade the extension to one that implements hooks of hooks.runtime.cluster.x-k8s.io/v1beta1"
	oneRemoved = "status.handlers: old.acme: hooks of hooks.runtime.cluster.x-k8s.io/v1alpha0 were removed in release v0.2.0 of the gateway: " +
		"upgrade the extension to one that implements hooks of hooks.runtime.cluster.x-k8s.io/v1beta1"
)

func TestHookVersions(t *testing.T) {
	now := metav1.NewTime(time.Now())
	for name, tc := range map[string]struct {
		reason   string
		versions map[string]string // of the handlers, by name
		change   func(*runtimev1.ExtensionConfig)
		removed  string
		outdated []string
	}{
		"Nothing":       {reason: "nobody knows its handlers"},
		"Current":       {reason: "a version that lives", versions: map[string]string{"a": "v1beta1"}},
		"Unknown":       {reason: "a version that never was is not a removed one", versions: map[string]string{"a": "v7"}},
		"Removed":       {reason: "there is nothing left to call", versions: map[string]string{"a": "v1alpha0", "b": "v1alpha0"}, removed: allRemoved},
		"RemovedPaused": {reason: "nobody calls one that is paused", versions: map[string]string{"old": "v1alpha0"}, change: func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, outdated: []string{oneRemoved}},
		"RemovedGoing":  {reason: "nobody is kept from deleting", versions: map[string]string{"old": "v1alpha0"}, change: func(c *runtimev1.ExtensionConfig) { c.DeletionTimestamp = &now }, outdated: []string{oneRemoved}},
		"RemovedPart":   {reason: "the others can be called", versions: map[string]string{"old": "v1alpha0", "other": "v1beta1"}, outdated: []string{oneRemoved}},
		"Deprecated":    {reason: "it works, and somebody should know", versions: map[string]string{"new": "v1alpha1"}, outdated: []string{oneDeprecated}},
		"Both":          {reason: "one text for each version", versions: map[string]string{"new": "v1alpha1", "old": "v1alpha0"}, outdated: []string{oneRemoved, oneDeprecated}},
		"Many": {
			reason: "a text does not grow with the handlers", versions: map[string]string{"a": "v1alpha1", "b": "v1alpha1", "c": "v1alpha1", "d": "v1alpha1", "e": "v1alpha1"},
			outdated: []string{strings.Replace(oneDeprecated, "new.acme", "a.acme, b.acme, c.acme and 2 more", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{}
			config.Name = "acme"
			for handler, version := range tc.versions {
				config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
					Name: handler + ".acme", RequestHook: runtimev1.GroupVersionHook{APIVersion: hook.Group + "/" + version, Hook: "BeforeClusterCreate"},
				})
			}
			if tc.change != nil {
				tc.change(config)
			}
			removed, outdated := HookVersions(config, outdatedHooks(t))
			got := ""
			if removed != nil {
				got = removed.Error()
			}
			if got != tc.removed {
				t.Errorf("%s: removed: got %q, want %q", tc.reason, got, tc.removed)
			}
			if diff := cmp.Diff(tc.outdated, outdated); diff != "" {
				t.Errorf("%s: outdated (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHookVersionsInManifests: a directory has the same rules, and says where.
func TestHookVersionsInManifests(t *testing.T) {
	words, err := newVocabulary()
	if err != nil {
		t.Fatal(err)
	}
	words.hooks = outdatedHooks(t)
	const manifest = `apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme%s}
spec:
  clientConfig: {url: "https://acme.example"}
status:
  handlers:
  - {name: %s.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/%s, hook: BeforeClusterCreate}}
`
	for name, tc := range map[string]struct {
		reason, metadata, handler, version string
		used                               bool
		want                               []string
	}{
		"Removed":    {"refused, as by the webhook", "", "old", "v1alpha0", false, []string{`m.yaml:7: ExtensionConfig "acme": ` + allRemoved}},
		"Paused":     {"one that is paused passes", ", annotations: {cluster.x-k8s.io/paused: ''}", "old", "v1alpha0", true, []string{`m.yaml:7: ExtensionConfig "acme": ` + oneRemoved}},
		"Deprecated": {"a word about it", "", "new", "v1alpha1", true, []string{`m.yaml:7: ExtensionConfig "acme": ` + oneDeprecated}},
		"Current":    {"nothing to say", "", "new", "v1beta1", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			docs, problems := parse("m.yaml", fmt.Appendf(nil, manifest, tc.metadata, tc.handler, tc.version))
			if len(docs) != 1 || len(problems) > 0 {
				t.Fatal(problems)
			}
			o, found := decode(&docs[0], words)
			var got []string
			for i := range found {
				if found[i].warning != tc.used {
					t.Errorf("%s: warning %t: %s", tc.reason, found[i].warning, found[i].Error())
				}
				if !strings.Contains(found[i].Error(), "is left out") {
					got = append(got, found[i].Error())
				}
			}
			if o.valid() != tc.used {
				t.Errorf("%s: used %t", tc.reason, o.valid())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
