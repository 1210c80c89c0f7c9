// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
)

// directory writes manifests, and returns where.
func directory(t *testing.T, manifests map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range manifests {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	extensionConfig = "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\n"
	extensionPolicy = "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\n"
)

// onlyBuiltin is what is said of a directory without CustomResourceDefinitions.
const onlyBuiltin = "the gateway knows the kinds of Cluster API's own providers, and the directory has no CustomResourceDefinition of another provider; " +
	"Clusters that refer to other kinds fail with Conversion"

func TestDirectory(t *testing.T) {
	create := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"}
	for name, tc := range map[string]struct {
		reason    string
		manifests map[string]string
		hooks     *catalog.Catalog // the product's, if nil
		want      preflight.Inventory
	}{
		"Status": {
			reason: "handlers come from the status, versions from the annotation, and places from the handlers",
			manifests: map[string]string{"a.yaml": extensionConfig + `metadata:
  name: acme
  annotations: {runtime.hookgate.dev/cluster-api-versions: '{"a":"v1beta1"}'}
spec: {clientConfig: {url: "https://acme.example"}}
status:
  handlers:
  - {name: a.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}
  - {name: b.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeCoffee}}
`},
			want: preflight.Inventory{Unchecked: onlyBuiltin, Extensions: []preflight.Extension{{Name: "acme", Location: preflight.Location{File: "a.yaml", Line: 1}, Handlers: []preflight.Handler{
				{Name: "a", Hook: create, States: "v1beta1", Location: preflight.Location{File: "a.yaml", Line: 9}},
				{Name: "b", Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeCoffee"}, Location: preflight.Location{File: "a.yaml", Line: 10}},
			}}}},
		},
		"Policies": {
			reason: "a handler's own policy takes the version from the one for all, and one that has no target takes no effect",
			manifests: map[string]string{
				"a.yaml": extensionConfig + `metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}, {name: b.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}]}
`,
				"p.yaml": extensionPolicy + "metadata: {name: all}\nspec: {targetRef: {name: acme}, clusterAPIVersion: v1beta1}\n---\n" +
					extensionPolicy + "metadata: {name: own}\nspec: {targetRef: {name: acme, handler: b}, timeoutSeconds: 3}\n---\n" +
					extensionPolicy + "metadata: {name: gone}\nspec: {targetRef: {name: acme, handler: c}, clusterAPIVersion: v1beta1}\n---\n" +
					extensionPolicy + "metadata: {name: unimportant}\nspec: {targetRef: {name: nobody}, timeoutSeconds: 3}\n",
			},
			want: preflight.Inventory{
				Extensions: []preflight.Extension{{Name: "acme", Location: preflight.Location{File: "a.yaml", Line: 1}, Handlers: []preflight.Handler{
					{Name: "a", Hook: create, Location: preflight.Location{File: "a.yaml", Line: 5}, Policy: &preflight.Policy{Name: "all", ForAll: true, States: "v1beta1", Location: preflight.Location{File: "p.yaml", Line: 1}}},
					{Name: "b", Hook: create, Location: preflight.Location{File: "a.yaml", Line: 5}, Policy: &preflight.Policy{Name: "all", ForAll: true, States: "v1beta1", Location: preflight.Location{File: "p.yaml", Line: 1}, Own: &preflight.Policy{Name: "own", Location: preflight.Location{File: "p.yaml", Line: 6}}}},
				}}},
				Unchecked: onlyBuiltin,
				Ignored: []preflight.IgnoredPolicy{{Name: "gone", ExtensionConfig: "acme", Location: preflight.Location{File: "p.yaml", Line: 11},
					Reason: `ExtensionConfig "acme" has no handler "c"; the policy takes effect as soon as its target appears`}},
			},
		},
		"Release": {
			reason: "a policy that states a release states the version that it sent, too",
			manifests: map[string]string{
				"a.yaml": extensionConfig + `metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}]}
`,
				"p.yaml": extensionPolicy + "metadata: {name: all}\nspec: {targetRef: {name: acme}, clusterAPIRelease: v1.12}\n",
			},
			want: preflight.Inventory{
				Extensions: []preflight.Extension{{Name: "acme", Location: preflight.Location{File: "a.yaml", Line: 1}, Handlers: []preflight.Handler{
					{Name: "a", Hook: create, Release: "v1.12", Location: preflight.Location{File: "a.yaml", Line: 5}, Policy: &preflight.Policy{Name: "all", ForAll: true, States: "v1beta1", Location: preflight.Location{File: "p.yaml", Line: 1}}},
				}}},
				Unchecked: onlyBuiltin,
			},
		},
		"Definitions": {
			reason: "kinds without a version for a contract cannot be converted, as in a cluster",
			manifests: map[string]string{
				"a.yaml": extensionConfig + `metadata: {name: acme, annotations: {runtime.hookgate.dev/cluster-api-versions: '{"a":"v1beta1"}'}}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}]}
`,
				"crds.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmeclusters.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oldclusters.infrastructure.example.com}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
`,
			},
			want: preflight.Inventory{
				Extensions: []preflight.Extension{{Name: "acme", Location: preflight.Location{File: "a.yaml", Line: 1}, Handlers: []preflight.Handler{
					{Name: "a", Hook: create, States: "v1beta1", Location: preflight.Location{File: "a.yaml", Line: 5}},
				}}},
				Unresolved: []string{`the CustomResourceDefinition "oldclusters.infrastructure.example.com" in the directory has no label that maps a contract of Cluster API to a version`},
				Unchecked: "the gateway knows the kinds of Cluster API's own providers, and those of the CustomResourceDefinitions in the directory: " +
					"acmeclusters.infrastructure.cluster.x-k8s.io; Clusters that refer to other kinds fail with Conversion",
			},
		},
		"Removed": {
			reason: "versions that no gateway serves are left to the judge", hooks: hookversions.New(),
			manifests: map[string]string{"a.yaml": extensionConfig + `metadata: {name: old}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.old, requestHook: {apiVersion: hooks.test.hookgate.dev/v0alpha1, hook: BeforeNodeDrain}}]}
`},
			want: preflight.Inventory{Extensions: []preflight.Extension{{Name: "old", Location: preflight.Location{File: "a.yaml", Line: 1}, Handlers: []preflight.Handler{
				{Name: "a", Hook: hook.GroupVersionHook{Group: hookversions.Group, Version: "v0alpha1", Hook: "BeforeNodeDrain"}, Location: preflight.Location{File: "a.yaml", Line: 5}},
			}}}},
		},
		"BadStatus": {
			reason: "a malformed status has no handlers",
			manifests: map[string]string{"a.yaml": extensionConfig + `metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example"}}
status: {handlers: [{name: a.other, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}]}
`},
			want: preflight.Inventory{
				Extensions: []preflight.Extension{{
					Name: "acme", Location: preflight.Location{File: "a.yaml", Line: 1},
					Undiscovered: `the handlers of the extension are not known: status.handlers[0].name: Invalid value: "a.other": must end with .acme`,
					Discover:     "call the extension with --discover, or put status.handlers into the manifest, as kubectl get --output yaml shows it",
				}},
				Unreadable: []preflight.Unreadable{{Object: `ExtensionConfig "acme"`, Location: preflight.Location{File: "a.yaml", Line: 5},
					Reason: `status.handlers[0].name: Invalid value: "a.other": must end with .acme`}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			hooks := tc.hooks
			if hooks == nil {
				hooks = catalog.New()
			}
			t.Chdir(directory(t, tc.manifests))
			got, err := Directory(t.Context(), ".", hooks, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// extensions answers for extensions, by URL.
type extensions map[string]func(registry.ClientConfig) (extension.Discovered, error)

func (e extensions) Discover(_ context.Context, client registry.ClientConfig) (extension.Discovered, error) {
	return e[client.URL](client)
}

// TestDirectoryAsks: the answer of an extension, in the protocol of its policy, has priority; without an answer, the
// manifest counts.
func TestDirectoryAsks(t *testing.T) {
	create := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"}
	var spoken registry.Protocol
	t.Chdir(directory(t, map[string]string{
		"live.yaml": extensionConfig + "metadata: {name: live}\nspec: {clientConfig: {url: \"https://live.example\"}}\n---\n" +
			extensionPolicy + "metadata: {name: live}\nspec: {targetRef: {name: live}, protocol: GRPC}\n",
		"dead.yaml": extensionConfig + "metadata: {name: dead}\nspec: {clientConfig: {url: \"https://dead.example\"}}\n" +
			"status: {handlers: [{name: a.dead, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}}]}\n",
	}))
	v, err := Directory(t.Context(), ".", catalog.New(), extensions{
		"https://live.example": func(c registry.ClientConfig) (extension.Discovered, error) {
			spoken = c.Protocol
			return extension.Discovered{
				Handlers: []registry.Handler{{Name: "a", Hook: create, Timeout: time.Second, FailurePolicy: hook.Fail, ClusterAPIVersion: "v1beta2"}},
				Skipped:  []extension.Skipped{{Name: "b", Reason: "no such hook"}},
			}, nil
		},
		"https://dead.example": func(registry.ClientConfig) (extension.Discovered, error) {
			return extension.Discovered{}, errors.New("connection refused")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if spoken != registry.GRPC {
		t.Errorf("the extension was asked in %q", spoken)
	}
	live := preflight.Location{File: "live.yaml", Line: 1}
	own := &preflight.Policy{Name: "live", Location: preflight.Location{File: "live.yaml", Line: 6}, ForAll: true}
	want := []preflight.Extension{
		{
			Name: "dead", Location: preflight.Location{File: "dead.yaml", Line: 1},
			Undiscovered: "the extension did not announce its handlers: connection refused; the handlers in its manifest are judged", Discover: "start the extension, or run the command from a place that can reach it",
			Handlers: []preflight.Handler{{Name: "a", Hook: create, Location: preflight.Location{File: "dead.yaml", Line: 5}}},
		},
		{Name: "live", Location: live, Handlers: []preflight.Handler{
			{Name: "a", Hook: create, States: "v1beta2", Location: live, Policy: own}, {Name: "b", Useless: "no such hook", Location: live, Policy: own},
		}},
	}
	if diff := cmp.Diff(want, v.Extensions); diff != "" {
		t.Errorf("extensions (-want +got):\n%s", diff)
	}
}
