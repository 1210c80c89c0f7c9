// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
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
		"upgrade the extension to a version that implements hooks of hooks.test.hookgate.dev/v1, and remove the old status from the ExtensionConfig"
	oneDeprecated = "status.handlers: new.acme: hooks of hooks.test.hookgate.dev/v1alpha1 are deprecated since release v0.4.0 of the gateway: " +
		"upgrade the extension to a version that implements hooks of hooks.test.hookgate.dev/v1"
	oneRemoved = "status.handlers: old.acme: hooks of hooks.test.hookgate.dev/v0alpha1 were removed in release v0.3.0 of the gateway: " +
		"upgrade the extension to a version that implements hooks of hooks.test.hookgate.dev/v1"
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
		"Nothing":       {reason: "its handlers are unknown"},
		"Current":       {reason: "a version that lives", versions: map[string]string{"a": "v1beta1"}},
		"Unknown":       {reason: "a version that never was is not a removed one", versions: map[string]string{"a": "v7"}},
		"Removed":       {reason: "there is nothing left to call", versions: map[string]string{"a": "v0alpha1", "b": "v0alpha1"}, removed: allRemoved},
		"RemovedPaused": {reason: "a paused one is not called", versions: map[string]string{"old": "v0alpha1"}, change: func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, outdated: []string{oneRemoved}},
		"RemovedGoing":  {reason: "deletion is always allowed", versions: map[string]string{"old": "v0alpha1"}, change: func(c *runtimev1.ExtensionConfig) { c.DeletionTimestamp = &now }, outdated: []string{oneRemoved}},
		"RemovedPart":   {reason: "the others can be called", versions: map[string]string{"old": "v0alpha1", "other": "v1beta1"}, outdated: []string{oneRemoved}},
		"Deprecated":    {reason: "it works, with a warning", versions: map[string]string{"new": "v1alpha1"}, outdated: []string{oneDeprecated}},
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
