// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/registry"
)

// Chains of a directory are read with their places, and what keeps them from being called now.
func TestDirectoryWithChains(t *testing.T) {
	got, err := Directory(t.Context(), directory(t, map[string]string{
		"a.yaml": extensionConfig + `metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: GeneratePatches}}]}
---
` + extensionConfig + `metadata: {name: late}
spec: {clientConfig: {url: "https://late.example"}}
`,
		"c.yaml": `apiVersion: hookgate.dev/v1alpha1
kind: HandlerChain
metadata: {name: good}
spec: {hook: GeneratePatches, steps: [{handler: a.acme}, {handler: b.acme, optional: true}, {handler: x.late}]}
---
apiVersion: hookgate.dev/v1alpha1
kind: HandlerChain
metadata: {name: missing}
spec: {hook: GeneratePatches, steps: [{handler: b.acme}]}
`,
	}), catalog.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	patches := hook.GroupHook{Group: hook.Group, Hook: "GeneratePatches"}
	want := []preflight.Chain{
		{Name: "good", Location: preflight.Location{File: "c.yaml", Line: 1}, Hook: patches, Steps: []string{"a.acme", "x.late"}},
		{
			Name: "missing", Location: preflight.Location{File: "c.yaml", Line: 6}, Hook: patches, Steps: []string{"b.acme"},
			Broken: `spec.steps[0].handler: no handler "b.acme" is registered`,
		},
	}
	for i := range got.Chains {
		got.Chains[i].Location.File = "c.yaml" // it is in a temporary directory
	}
	if diff := cmp.Diff(want, got.Chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

// What Cluster API calls itself, beside the gateway, counts among the handlers that it finds of an in-place hook;
// handlers of a gateway in front of these do not count twice.
func TestSeveralHandlers(t *testing.T) {
	hooks := catalog.New()
	h := func(name, hookName string) preflight.Handler {
		return preflight.Handler{Name: name, Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookName}}
	}
	var ofGateway []preflight.Handler
	for _, hub := range hooks.Hubs() {
		if hub.Mergeable {
			ofGateway = append(ofGateway, h(strings.ToLower(hub.Hook), hub.Hook))
		}
	}
	ofGateway = append(ofGateway, h("chain", "CanUpdateMachine"))
	v := preflight.Inventory{Extensions: []preflight.Extension{
		{Name: "gate", Handlers: ofGateway},
		{Name: "acme", Handlers: []preflight.Handler{h("a", "CanUpdateMachine"), h("u", "UpdateMachine"), h("patch", "GeneratePatches")}},
		{Name: "more", Handlers: []preflight.Handler{h("u", "UpdateMachine"), h("patch", "GeneratePatches")}},
		{Name: "core", Direct: true, Handlers: []preflight.Handler{h("b", "CanUpdateMachine")}},
	}}
	ignores := []locatedPolicy{{Policy: extensionpolicy.Policy{
		Name: "p", Target: extensionpolicy.Target{ExtensionConfig: "acme"}, Compiled: &policy.Policy{FailurePolicy: hook.Ignore},
	}}}
	decideChains(&v, ignores, nil, []locatedChain{{Chain: registry.Chain{
		Name: "chain", Hook: hook.GroupHook{Group: hook.Group, Hook: "CanUpdateMachine"}, OneHandler: true, Strict: true,
		Steps: []registry.ChainStep{{Handler: "a.acme"}},
	}}}, hooks)
	const puts = "; put them into one HandlerChain"
	want := []preflight.SeveralHandlers{
		{Hook: hook.GroupHook{Group: hook.Group, Hook: "CanUpdateMachine"}, Problem: "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: chain, b.core" + puts},
		{Hook: hook.GroupHook{Group: hook.Group, Hook: "UpdateMachine"}, Problem: "Cluster API accepts only one handler of UpdateMachine, but 2 are offered: u--acme, u--more" + puts},
	}
	if diff := cmp.Diff(want, v.Several); diff != "" {
		t.Errorf("several (-want +got):\n%s", diff)
	}
	const refused = `spec.steps[0].handler: handler "a.acme" has failurePolicy Ignore, so a failure would look like an answer: set failurePolicy: Fail in its ExtensionPolicy`
	if v.Chains[0].Broken != refused {
		t.Errorf("got %s, want %s", v.Chains[0].Broken, refused)
	}
}
