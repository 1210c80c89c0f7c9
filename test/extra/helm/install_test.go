// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/process"
)

// coreDefinition is the file with the definition of ExtensionConfigs in Cluster API's group.
const coreDefinition = "runtime.cluster.x-k8s.io_extensionconfigs.yaml"

// TestInstall installs the chart in a real API server, upgrades it, and uninstalls it. The API server refuses objects with
// fields that it does not know.
func TestInstall(t *testing.T) {
	c, ch := startCluster(t), load(t)
	for _, installation := range slices.Backward(installations) { // hub-alone comes before the definition of core's
		if installation == "hub-beside-core" {
			c.defineForCore(t)
		}
		c.installInTurn(t, ch, installation)
	}
	t.Run("without a memory limit", func(t *testing.T) {
		c.install(t, ch, values{"installation": "directory", "resources": nil})
		c.upgrade(t, ch, values{"installation": "directory", "env": []any{values{"name": "GOMEMLIMIT", "value": "100MiB"}}})
		c.uninstall(t)
	})
	t.Run("objects of users stay", func(t *testing.T) { c.keepsObjects(t, ch) })
	t.Run("definitions are upgraded", func(t *testing.T) { c.upgradesDefinitions(t, ch) })
	t.Run("what others write stays", func(t *testing.T) { c.keepsFields(t, ch) })
}

// installInTurn installs the first case of an installation, upgrades from each case to the next, and uninstalls the last.
func (c *cluster) installInTurn(t *testing.T, ch *chart.Chart, installation string) {
	t.Helper()
	var last objects
	for _, test := range cases {
		if of, ok := test.set["installation"]; ok && of != installation || !ok && installation != "hub-beside-core" {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			all := render(t, ch, namespace, test.set)
			maps.DeleteFunc(all, isReleaseHook)
			act := c.upgrade
			if last == nil {
				act = c.install
			}
			act(t, ch, test.set)
			c.expect(t, all, func(map[string]any) bool { return true })
			c.expect(t, without(last, all), isDefinition)
			last = all
		})
	}
	t.Run(installation+", uninstalled", func(t *testing.T) {
		kept := c.uninstall(t)
		c.expect(t, last, isDefinition)
		for key, object := range last {
			if name := (&unstructured.Unstructured{Object: object}).GetName(); isDefinition(object) && !strings.Contains(kept, name) {
				t.Errorf("Helm does not say that it keeps %s: %q", key, kept)
			}
		}
		var secrets corev1.SecretList
		if err := c.List(t.Context(), &secrets, client.InNamespace(namespace)); err != nil || len(secrets.Items) > 0 {
			t.Errorf("%d Secrets are left (%v)", len(secrets.Items), err)
		}
	})
	c.undefine(t)
}

// keepsObjects checks that ExtensionConfigs, ExtensionPolicies and HandlerChains stay when the chart is uninstalled, and that it can be
// installed again beside them.
func (c *cluster) keepsObjects(t *testing.T, ch *chart.Chart) {
	c.install(t, ch, nil)
	c.uninstall(t) // without its webhooks the API server admits objects while there is no gateway
	users := decode(t, `
apiVersion: runtime.hookgate.dev/v1beta2
kind: ExtensionConfig
metadata: {name: acme}
spec: {clientConfig: {url: "https://acme.example.com"}}
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionPolicy
metadata: {name: acme}
spec: {targetRef: {kind: ExtensionConfig, name: acme}, timeoutSeconds: 5}
---
apiVersion: hookgate.dev/v1alpha1
kind: HandlerChain
metadata: {name: chain}
spec: {hook: BeforeClusterCreate, steps: [{handler: a.acme}]}
`)
	for _, object := range users {
		if err := c.Create(t.Context(), &unstructured.Unstructured{Object: object}); err != nil {
			t.Fatal(err)
		}
	}
	there := func(map[string]any) bool { return true }
	c.install(t, ch, nil)
	c.expect(t, users, there)
	c.uninstall(t)
	c.expect(t, users, there)
	c.undefine(t)
}

// upgradesDefinitions installs an older chart, whose definition of ExtensionPolicies has no columns.
func (c *cluster) upgradesDefinitions(t *testing.T, ch *chart.Chart) {
	const file = "files/crd-extensionpolicies.hookgate.dev.yaml"
	older := load(t)
	i := slices.IndexFunc(older.Files, func(f *common.File) bool { return f.Name == file })
	if i < 0 {
		t.Fatalf("the chart has no %s", file)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(older.Files[i].Data, &definition); err != nil {
		t.Fatal(err)
	}
	for _, version := range definition["spec"].(map[string]any)["versions"].([]any) {
		delete(version.(map[string]any), "additionalPrinterColumns")
	}
	text, err := yaml.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	older.Files[i].Data = text
	columns := func() int {
		version := c.get(t, definition).Object["spec"].(map[string]any)["versions"].([]any)[0]
		all, _ := version.(map[string]any)["additionalPrinterColumns"].([]any)
		return len(all)
	}
	c.install(t, older, nil)
	if n := columns(); n > 1 { // the API server adds the age where there are none
		t.Errorf("the definition of the older chart has %d columns", n)
	}
	c.upgrade(t, ch, nil)
	if n := columns(); n < 3 {
		t.Errorf("the definition has %d columns after the upgrade", n)
	}
	c.uninstall(t)
	c.undefine(t)
}

// keepsFields checks that an upgrade leaves what cert-manager writes into webhooks and definitions, and changes nothing
// if the chart and the values are the same.
func (c *cluster) keepsFields(t *testing.T, ch *chart.Chart) {
	c.install(t, ch, nil)
	all := render(t, ch, namespace, nil)
	written := 0
	for _, object := range all {
		at := map[string]string{
			"ValidatingWebhookConfiguration": "/webhooks/0/clientConfig", "MutatingWebhookConfiguration": "/webhooks/0/clientConfig",
			"CustomResourceDefinition": "/spec/conversion/webhook/clientConfig",
		}[object["kind"].(string)]
		o := c.get(t, object)
		if strategy, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy"); at == "" || strategy == "None" {
			continue
		}
		patch := fmt.Appendf(nil, `[{"op":"add","path":"%s/caBundle","value":"%s"}]`, at, c.caBundle())
		if err := c.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("cert-manager-cainjector")); err != nil {
			t.Fatal(err)
		}
		written++
	}
	if written < 3 {
		t.Errorf("only %d objects have a CA", written)
	}
	before := map[string]string{}
	for key, object := range all {
		before[key] = c.get(t, object).GetResourceVersion()
	}
	c.upgrade(t, ch, nil)
	for key, object := range all {
		if after := c.get(t, object); after.GetResourceVersion() != before[key] {
			t.Errorf("%s: the upgrade has changed it", key)
		}
	}
	c.uninstall(t)
	c.undefine(t)
}

// defineForCore creates Cluster API's definition of ExtensionConfigs, as core has it.
func (c *cluster) defineForCore(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "crd", coreDefinition))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range decode(t, string(text)) {
		if err := c.Create(t.Context(), &unstructured.Unstructured{Object: object}); err != nil {
			t.Fatal(err)
		}
	}
}

// undefine deletes the definitions that Helm has installed, with their objects, and waits until they are gone.
func (c *cluster) undefine(t *testing.T) {
	t.Helper()
	helms := client.MatchingLabels{"app.kubernetes.io/managed-by": "Helm"}
	if err := c.DeleteAllOf(t.Context(), &apiextensionsv1.CustomResourceDefinition{}, helms); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "the definitions are gone", func() bool {
		var left apiextensionsv1.CustomResourceDefinitionList
		if err := c.List(t.Context(), &left, helms); err != nil {
			t.Fatal(err)
		}
		return len(left.Items) == 0
	})
}

// isDefinition reports whether an object stays when the chart is uninstalled.
func isDefinition(object map[string]any) bool { return object["kind"] == "CustomResourceDefinition" }

// without returns the objects that are not among others.
func without(all, others objects) objects {
	left := objects{}
	for key, object := range all {
		if others[key] == nil {
			left[key] = object
		}
	}
	return left
}
