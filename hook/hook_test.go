// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import "testing"

func TestPath(t *testing.T) {
	h := GroupVersionHook{Group: Group, Version: Version, Hook: "BeforeClusterCreate"}
	const want = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate"
	if got := h.Path(""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := h.Path("My.Handler"); got != want+"/my.handler" {
		t.Errorf("got %s, want the handler in lower case", got)
	}
	if got := h.String(); got != "hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterCreate" {
		t.Errorf("String: got %s", got)
	}
	if got := h.GroupHook(); got != (GroupHook{Group, "BeforeClusterCreate"}) || got.String() != "hooks.runtime.cluster.x-k8s.io/BeforeClusterCreate" {
		t.Errorf("GroupHook: got %s", got)
	}
	if h.APIVersion() != APIVersion {
		t.Errorf("APIVersion: got %s, want %s", h.APIVersion(), APIVersion)
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct{ apiVersion, name, want string }{
		{"g.example/v1", "H", ""},
		{"g.example", "H", `apiVersion "g.example" is not of the form group/version`},
		{"/v1", "H", `apiVersion "/v1" is not of the form group/version`},
		{"g.example/", "H", `apiVersion "g.example/" is not of the form group/version`},
		{"g.example/v1/x", "H", `apiVersion "g.example/v1/x" is not of the form group/version`},
		{"", "H", `apiVersion "" is not of the form group/version`},
		{"g.example/v1", "", `hook of apiVersion "g.example/v1" has no name`},
	} {
		got, err := Parse(tc.apiVersion, tc.name)
		if tc.want == "" {
			if want := (GroupVersionHook{"g.example", "v1", "H"}); err != nil || got != want {
				t.Errorf("%s %s: got %v, %v", tc.apiVersion, tc.name, got, err)
			}
		} else if err == nil || err.Error() != tc.want || got != (GroupVersionHook{}) {
			t.Errorf("%s %s: got %v, %v; want %s", tc.apiVersion, tc.name, got, err, tc.want)
		}
	}
}

func TestCheckClusterAPIVersion(t *testing.T) {
	for version, ok := range map[string]bool{"v1beta1": true, "v1beta2": true, "": false, "v1beta3": false, "V1beta1": false} {
		if err := CheckClusterAPIVersion(version); (err == nil) != ok {
			t.Errorf("%q: got %v", version, err)
		}
	}
}
