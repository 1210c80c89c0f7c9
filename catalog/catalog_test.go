// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func TestEveryHookIsFound(t *testing.T) {
	c := New()
	if len(c.Hooks()) != 17 || len(c.Hubs()) != 17 {
		t.Errorf("the contract has %d hooks, %d of them hubs", len(c.Hooks()), len(c.Hubs()))
	}
	for _, h := range c.Hooks() {
		if got, ok := c.Lookup(h.GroupVersionHook); !ok || got != h {
			t.Errorf("Lookup of %s: %v", h, got)
		}
		if got, ok := c.ByName(strings.ToUpper(h.Hook)); !ok || got != h {
			t.Errorf("ByName of %s: %v", h, got)
		}
		if got, ok := c.ByMethod(h.Method); !ok || got != h {
			t.Errorf("ByMethod of %s: %v", h, got)
		}
		if h.Hub() != h {
			t.Errorf("%s has another hub", h)
		}
		if _, _, ok := h.Deprecated(); ok {
			t.Errorf("%s is deprecated", h)
		}
	}
}

func TestByPath(t *testing.T) {
	c := New()
	const create = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate"
	for path, want := range map[string]struct {
		hook, rest string
		wrong      bool // not its path
	}{
		create:                  {"BeforeClusterCreate", "", false},
		create + "/v.acme":      {"BeforeClusterCreate", "/v.acme", false},
		create + "/v.acme/more": {"BeforeClusterCreate", "/v.acme/more", false},
		create + "/":            {"BeforeClusterCreate", "/", false},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterCreate/V": {"BeforeClusterCreate", "/V", true},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha2/beforeclustercreate":   {},
		"/hooks.runtime.cluster.X-K8s.io/v1alpha1/beforeclustercreate":   {},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/":                      {},
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1":                       {},
		"//": {},
		"/":  {},
		"":   {},
	} {
		h, rest, ok := c.ByPath(path)
		switch {
		case want.hook == "" && h == nil && !ok:
		case h == nil, h.Hook != want.hook, rest != want.rest, ok == want.wrong:
			t.Errorf("%q: got %v %q %t, want %+v", path, h, rest, ok, want)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	files := []protoreflect.FileDescriptor{hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto}
	source := func(version string, l Lifetime, files ...protoreflect.FileDescriptor) Source {
		return Source{Group: hook.Group, Version: version, Lifetime: l, Files: files}
	}
	for name, tc := range map[string]struct {
		sources []Source
		want    string
	}{
		"Twice": {
			[]Source{source("v1", Lifetime{}, files...), source("v1", Lifetime{}, files...)},
			"version hooks.runtime.cluster.x-k8s.io/v1: stands twice in the catalog",
		},
		"HookTwice": {
			[]Source{source("v1", Lifetime{}, files[0], files[0])},
			"version hooks.runtime.cluster.x-k8s.io/v1: hook Discovery: stands twice in one version",
		},
		"NoHooks": {
			[]Source{source("v1", Lifetime{})},
			"version hooks.runtime.cluster.x-k8s.io/v1: has no hooks, and was not removed",
		},
		"RemovedWithHooks": {
			[]Source{source("v1", Lifetime{Removed: "v0.2.0"}, files...)},
			"version hooks.runtime.cluster.x-k8s.io/v1: has hooks, and was removed in v0.2.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(nil, tc.sources...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
