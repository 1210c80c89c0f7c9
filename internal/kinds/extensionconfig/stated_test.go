// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

func TestStatedVersions(t *testing.T) {
	const field = "metadata.annotations[runtime.hookgate.dev/cluster-api-versions]: Invalid value: "
	cases := map[string]struct {
		reason   string
		text     string
		want     map[string]string // of handlers a and b
		problems string
	}{
		"AsWritten":  {"What the leader has written comes back.", `{"a":"v1beta1"}`, map[string]string{"a": "v1beta1"}, ""},
		"Other":      {"A removed handler affects no other.", `{"b":"v1beta2","gone":"v1beta1"}`, map[string]string{"b": "v1beta2"}, ""},
		"NotJSON":    {"It is named, and the handlers count all the same.", `v1beta1`, nil, field + `"v1beta1": must be a JSON object of handlers and versions, such as {"before-create":"v1beta1"}`},
		"NotStrings": {"As above.", `{"a":1}`, nil, field + `"{\"a\":1}": must be a JSON object of handlers and versions, such as {"before-create":"v1beta1"}`},
		"NotKnown": {
			"A newer gateway may know more versions; the others count.", `{"a":"v1","b":"v1beta1"}`, map[string]string{"b": "v1beta1"},
			field + `"{\"a\":\"v1\",\"b\":\"v1beta1\"}": handler "a": "v1" is neither "v1beta1" nor "v1beta2"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{}
			config.Name, config.Annotations = "acme", map[string]string{StatedVersionsAnnotation: tc.text}
			for _, h := range []string{"a", "b"} {
				config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
					Name: h + ".acme", RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
				})
			}
			handlers, _, errs := LastKnownHandlers(config, catalog.New())
			if len(errs) > 0 || len(handlers) != 2 {
				t.Fatalf("%s: handlers %v, errors %v", tc.reason, handlers, errs)
			}
			var got map[string]string
			for _, h := range handlers {
				if h.ClusterAPIVersion != "" {
					if got == nil {
						got = map[string]string{}
					}
					got[h.Name] = h.ClusterAPIVersion
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			_, errs = StatedVersions(config)
			if problems := errs.ToAggregate(); problems == nil && tc.problems != "" || problems != nil && problems.Error() != tc.problems {
				t.Errorf("%s\ngot  %v\nwant %s", tc.reason, problems, tc.problems)
			}
		})
	}
	t.Run("Format", func(t *testing.T) {
		if got := FormatStatedVersions([]registry.Handler{{Name: "a"}, {Name: "b"}}); got != "" {
			t.Errorf("of handlers that state nothing: %s", got)
		}
		got := FormatStatedVersions([]registry.Handler{{Name: "b", ClusterAPIVersion: "v1beta1"}, {Name: "c"}, {Name: "a", ClusterAPIVersion: "v1beta2"}})
		if want := `{"a":"v1beta2","b":"v1beta1"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
