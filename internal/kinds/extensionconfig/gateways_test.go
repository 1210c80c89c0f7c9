// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

func TestGateways(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want map[string]string
		err  string // a part of the only error; empty for none
	}{
		"Some":      {`{"a":["x","y"],"a,b":["z"]}`, map[string]string{"x": "a", "y": "a", "z": "a,b"}, ""},
		"NotJSON":   {`{`, nil, "must be a JSON object of gateways and lists of handlers"},
		"NotLists":  {`{"a":"x"}`, nil, "must be a JSON object of gateways and lists of handlers"},
		"NotAnID":   {`{"a b":["x"],"a":["y"]}`, map[string]string{"y": "a"}, `gateways "a b": want ids of gateways`},
		"MostHops":  {`{"1,2,3,4,5,6,7,8":["x"]}`, map[string]string{"x": "1,2,3,4,5,6,7,8"}, ""},
		"OneBeyond": {`{"1,2,3,4,5,6,7,8,9":["x"]}`, map[string]string{}, "has more than 8 gateways"},
	} {
		config := &runtimev1.ExtensionConfig{}
		config.Annotations = map[string]string{GatewaysAnnotation: tc.text}
		got, errs := Gateways(config)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if (len(errs) > 0) != (tc.err != "") || len(errs) > 1 || tc.err != "" && !strings.Contains(errs[0].Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, errs, tc.err)
		}
	}
}

// TestGatewaysAreKept checks that replicas that only read the annotation know as much as the one that has written it.
func TestGatewaysAreKept(t *testing.T) {
	handlers := []registry.Handler{{Name: "x", Gateways: "a,b"}, {Name: "w"}, {Name: "z", Gateways: "a"}, {Name: "y", Gateways: "a"}}
	text := FormatGateways(handlers)
	if want := `{"a":["y","z"],"a,b":["x"]}`; text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if text := FormatGateways(handlers[1:2]); text != "" {
		t.Errorf("without other gateways: %s", text)
	}
	config := &runtimev1.ExtensionConfig{}
	config.Name, config.Annotations = "hub", map[string]string{GatewaysAnnotation: text}
	for _, name := range []string{"w", "x", "y", "z"} {
		config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
			Name:        name + ".hub",
			RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "GeneratePatches"},
		})
	}
	known, _, errs := LastKnownHandlers(config, catalog.New())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := map[string]string{}
	for _, h := range known {
		got[h.Name] = h.Gateways
	}
	if diff := cmp.Diff(map[string]string{"w": "", "x": "a,b", "y": "a", "z": "a"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
