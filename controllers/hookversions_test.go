// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/test/hookversions"
)

const (
	allRemoved = "status.handlers: Forbidden: the gateway can call none of the handlers: hooks of hooks.test.hookgate.dev/v0alpha1 were removed in release v0.3.0 of the gateway; " +
		"upgrade the extension to one that implements hooks of hooks.test.hookgate.dev/v1, and leave out the status of the old one"
	oneDeprecated = "status.handlers: new.acme: hooks of hooks.test.hookgate.dev/v1alpha1 are deprecated since release v0.4.0 of the gateway: " +
		"upgrade the extension to one that implements hooks of hooks.test.hookgate.dev/v1"
	oneRemoved = "status.handlers: old.acme: hooks of hooks.test.hookgate.dev/v0alpha1 were removed in release v0.3.0 of the gateway: " +
		"upgrade the extension to one that implements hooks of hooks.test.hookgate.dev/v1"
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
		"Removed":       {reason: "there is nothing left to call", versions: map[string]string{"a": "v0alpha1", "b": "v0alpha1"}, removed: allRemoved},
		"RemovedPaused": {reason: "nobody calls one that is paused", versions: map[string]string{"old": "v0alpha1"}, change: func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, outdated: []string{oneRemoved}},
		"RemovedGoing":  {reason: "nobody is kept from deleting", versions: map[string]string{"old": "v0alpha1"}, change: func(c *runtimev1.ExtensionConfig) { c.DeletionTimestamp = &now }, outdated: []string{oneRemoved}},
		"RemovedPart":   {reason: "the others can be called", versions: map[string]string{"old": "v0alpha1", "other": "v1beta1"}, outdated: []string{oneRemoved}},
		"Deprecated":    {reason: "it works, and somebody should know", versions: map[string]string{"new": "v1alpha1"}, outdated: []string{oneDeprecated}},
		"Both":          {reason: "one text for each version", versions: map[string]string{"new": "v1alpha1", "old": "v0alpha1"}, outdated: []string{oneRemoved, oneDeprecated}},
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
					Name: handler + ".acme", RequestHook: runtimev1.GroupVersionHook{APIVersion: hookversions.Group + "/" + version, Hook: hookversions.BeforeNodeDrain},
				})
			}
			if tc.change != nil {
				tc.change(config)
			}
			removed, outdated := HookVersions(config, hookversions.New())
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
	words.hooks = hookversions.New()
	const manifest = `apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: acme%s}
spec:
  clientConfig: {url: "https://acme.example"}
status:
  handlers:
  - {name: %s.acme, requestHook: {apiVersion: hooks.test.hookgate.dev/%s, hook: BeforeNodeDrain}}
`
	for name, tc := range map[string]struct {
		reason, metadata, handler, version string
		used                               bool
		want                               []string
	}{
		"Removed":    {"refused, as by the webhook", "", "old", "v0alpha1", false, []string{`m.yaml:7: ExtensionConfig "acme": ` + allRemoved}},
		"Paused":     {"one that is paused passes", ", annotations: {cluster.x-k8s.io/paused: ''}", "old", "v0alpha1", true, []string{`m.yaml:7: ExtensionConfig "acme": ` + oneRemoved}},
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
