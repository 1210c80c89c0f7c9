// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
)

// countedNamespaces counts the look-ups of labels.
type countedNamespaces struct{ lookups int }

func (n *countedNamespaces) NamespaceLabels(string) (map[string]string, bool) {
	n.lookups++
	return nil, true
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
		for what, r2 := range map[string]selection.Request{
			"built":   {Hook: hookOf(t, "GeneratePatches"), Message: request},
			"skipped": {Hook: hookOf(t, "GeneratePatches"), Partial: &hooksv1alpha1.GeneratePatchesRequest{}, Namespaces: names[:tc.namespaces]},
		} {
			counted := &countedNamespaces{}
			m := selection.New(counted, nil, allVersions, mandated)
			err := m.Read(r2)
			if err == nil {
				var targets []selection.Target
				if targets, err = selection.Matching(t.Context(), r.Snapshot(), r2, &m); err == nil {
					err = selection.WantOne(r2.Hook, targets)
				}
			}
			if hook.KindOf(err) != tc.kind || counted.lookups != tc.lookups {
				t.Errorf("%s, %d namespaces: %v after %d look-ups, want %v after %d",
					what, tc.namespaces, err, counted.lookups, tc.kind, tc.lookups)
			}
		}
	}
}

// Where a selector reads a name that could mean two values, the call is refused; what no selector reads is passed on.
func TestNamesThatDifferOnlyInCase(t *testing.T) {
	const create, update, patches = "BeforeClusterCreate", "CanUpdateMachine", "GeneratePatches"
	message := map[string]func(object string) proto.Message{
		create: func(object string) proto.Message {
			return &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(object)}}
		},
		update: func(object string) proto.Message {
			return &hooksv1alpha1.CanUpdateMachineRequest{
				Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: []byte(object)}},
			}
		},
		patches: func(value string) proto.Message {
			return &hooksv1alpha1.GeneratePatchesRequest{
				Variables: []*hooksv1alpha1.Variable{{Name: subject.Builtin, Value: &hooksv1alpha1.JSON{Raw: []byte(value)}}},
			}
		},
	}
	for name, tc := range map[string]struct {
		hook, object, namespaces, objects string // selectors
		want                              string // error; empty for a call
	}{
		"Both":         {create, `{"metadata":{"name":"c","namespace":"n","Namespace":"m"}}`, "tier=n", "", `cluster.metadata.Namespace: differs from "namespace" only in case`},
		"Alone":        {create, `{"Metadata":{"name":"c","namespace":"n"}}`, "tier=n", "", `cluster.Metadata: differs from "metadata" only in case`},
		"Twice":        {create, `{"metadata":{"namespace":"n"},"metadata":{}}`, "tier=n", "", "cluster.metadata: occurs twice in one object"},
		"Kelvin":       {update, `{"metadata":{"namespace":"n","name\u017fpace":"m"}}`, "tier=n", "", `current.machine.metadata.nameſpace: differs from "namespace" only in case`},
		"Labels":       {create, `{"metadata":{"labels":{"tier":"n"},"LABELS":{"tier":"m"}}}`, "", "tier=n", `handler "v.acme": cluster.metadata.LABELS: differs from "labels" only in case`},
		"Builtin":      {patches, `{"cluster":{"metadata":{"labels":{"tier":"n"}}},"Cluster":{}}`, "", "tier=n", `handler "v.acme": variable builtin: Cluster: differs from "cluster" only in case`},
		"KeysOfLabels": {create, `{"metadata":{"namespace":"n","labels":{"tier":"n","Tier":"m"},"annotations":{"a":"","A":""}}}`, "tier=n", "tier=n", ""},
		"Elsewhere":    {create, `{"metadata":{"namespace":"n"},"spec":{"a":1,"A":2}}`, "tier=n", "", ""},
		"NotRead":      {create, `{"metadata":{"namespace":"n","Namespace":"m"}}`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, called := registry.New(), &callLog{}
			reg := registrationOf("acme", handlerOf("v", tc.hook, hook.Ignore))
			if tc.namespaces != "" {
				reg.NamespaceSelector = selector(t, tc.namespaces)
			}
			if err := r.Apply(reg); err != nil {
				t.Fatal(err)
			}
			if tc.objects != "" {
				r.SetPolicies("acme", forHandler("v", policy.Policy{ObjectSelector: selector(t, tc.objects)}))
			}
			r.SetReady()
			d := newDispatcher(r, tieredNamespaces{}, called)
			for _, handler := range []string{"", "v.acme"} {
				_, err := d.dispatch(t.Context(), hookOf(t, tc.hook), handler, message[tc.hook](tc.object))
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("handler %q: %v", handler, err)
				case tc.want != "" && (hook.KindOf(err) != hook.InvalidRequest || err.Error() != tc.want):
					t.Errorf("handler %q: got %v, want %s", handler, err, tc.want)
				}
			}
			if tc.want != "" && len(called.calls) > 0 {
				t.Errorf("%v was called", called.calls)
			}
		})
	}
}

// tieredNamespaces has namespaces whose label tier is their name.
type tieredNamespaces struct{}

func (tieredNamespaces) NamespaceLabels(name string) (map[string]string, bool) {
	return map[string]string{"tier": name}, true
}
