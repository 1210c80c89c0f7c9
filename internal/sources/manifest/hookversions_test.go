// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestHookVersionsInManifests: a directory has the same rules, and says where.
func TestHookVersionsInManifests(t *testing.T) {
	words, err := NewDecoder(hookversions.New())
	if err != nil {
		t.Fatal(err)
	}
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
				if found[i].Warning != tc.used {
					t.Errorf("%s: warning %t: %s", tc.reason, found[i].Warning, found[i].Error())
				}
				if !strings.Contains(found[i].Error(), "is left out") {
					got = append(got, found[i].Error())
				}
			}
			if o.Valid() != tc.used {
				t.Errorf("%s: used %t", tc.reason, o.Valid())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
