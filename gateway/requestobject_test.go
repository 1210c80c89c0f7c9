// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strconv"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/registry"
)

// TestNamespacesOf has a request with many namespaces, each several times.
func TestNamespacesOf(t *testing.T) {
	var want []string
	item := func(namespace string) *hooksv1alpha1.GeneratePatchesRequestItem {
		return &hooksv1alpha1.GeneratePatchesRequestItem{
			HolderReference: &hooksv1alpha1.HolderReference{Namespace: namespace},
		}
	}
	request := &hooksv1alpha1.GeneratePatchesRequest{}
	for i := range limits.Elements / 4 {
		want = append(want, strconv.Itoa(i))
		request.Items = append(request.Items, item(want[i]), item(want[i]), item(want[i/2]))
	}
	if got := namespacesOf(request, nil); !slices.Equal(got, want) {
		t.Errorf("got %d namespaces, want %d, each once and in order", len(got), len(want))
	}
	if got := namespacesOf(&hooksv1alpha1.GeneratePatchesRequest{}, want); !slices.Equal(got, want) {
		t.Errorf("got %d namespaces of an outline, want %d", len(got), len(want))
	}
}

// countedNamespaces counts the look-ups of labels.
type countedNamespaces struct{ lookups int }

func (n *countedNamespaces) NamespaceLabels(string) map[string]string {
	n.lookups++
	return nil
}

// Each namespace is looked up for each handler with a selector, so that there are not as many as items.
func TestNamespacesOfARequestAreLimited(t *testing.T) {
	const handlers = 3
	r := registry.New()
	for i := range handlers {
		reg := registrationOf("x"+strconv.Itoa(i), handlerOf("p", "GeneratePatches", hook.Fail))
		reg.NamespaceSelector = selector(t, "team!=red")
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
	}
	r.SetReady()
	for _, tc := range []struct {
		namespaces int
		kind       hook.Kind
		lookups    int
	}{
		{limits.Namespaces, hook.Ambiguous, handlers * limits.Namespaces},
		{limits.Namespaces + 1, hook.TooLarge, 0},
	} {
		request := &hooksv1alpha1.GeneratePatchesRequest{}
		var names []string
		for i := range 5 * tc.namespaces {
			name := strconv.Itoa(i % tc.namespaces)
			names = append(names, name)
			request.Items = append(request.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
				HolderReference: &hooksv1alpha1.HolderReference{Namespace: name},
			})
		}
		for what, r2 := range map[string]Request{
			"built":   {Hook: hookOf(t, "GeneratePatches"), Message: request},
			"unbuilt": {Hook: hookOf(t, "GeneratePatches"), Outline: &hooksv1alpha1.GeneratePatchesRequest{}, Namespaces: names[:tc.namespaces]},
		} {
			counted := &countedNamespaces{}
			m := matcher{namespaceLabels: counted, versions: allVersions}
			err := m.read(r2)
			if err == nil {
				err = wantOne(r2.Hook, matching(t.Context(), r.Snapshot(), r2, &m))
			}
			if hook.KindOf(err) != tc.kind || counted.lookups != tc.lookups {
				t.Errorf("%s, %d namespaces: %v after %d look-ups, want %v after %d",
					what, tc.namespaces, err, counted.lookups, tc.kind, tc.lookups)
			}
		}
	}
}
