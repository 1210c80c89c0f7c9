// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// The names are those that Dispatcher.Discover answers with.
func TestOfferedAs(t *testing.T) {
	r := &Reporter{Catalog: catalog.New()}
	for _, tt := range []struct {
		hook string
		sole bool
		want string
	}{
		{"BeforeClusterCreate", false, "beforeclustercreate"},
		{"BeforeClusterCreate", true, "x"},
		{"GeneratePatches", false, "x"},
		{"GeneratePatches", true, "x"},
		{"Unknown", false, "x"},
	} {
		e := &registry.Entry{Label: "x", Registration: &registry.Registration{}, Handler: registry.Handler{
			Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: tt.hook},
		}}
		reg := registry.New()
		if tt.sole {
			reg = registry.NewSidecar()
		}
		if got, _ := r.offeredAs(reg.Snapshot(), e); got != tt.want {
			t.Errorf("%s, sole %t: %q, want %q", tt.hook, tt.sole, got, tt.want)
		}
	}
}
