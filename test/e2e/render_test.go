// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// renderCase is a Cluster with its ClusterClass.
type renderCase struct {
	name string
	// files are below the folder of upstream's e2e data, unless they begin with a dot or a slash. A folder is rendered by
	// kubectl kustomize.
	files []string
	// variables stand in the files, beside those that all have.
	variables map[string]string
}

// renderCases are all ClusterClasses that Cluster API's repository has for its Dev provider, and some of this one.
func renderCases(t *testing.T) []renderCase {
	docker := filepath.Join(moduleDir(t, "sigs.k8s.io/cluster-api/test"), "infrastructure", "docker", "templates")
	direct := map[string]string{"EXTENSION_CONFIG_NAME": directly}
	return []renderCase{
		{"quick-start-of-docker", []string{docker + "/clusterclass-quick-start.yaml", docker + "/cluster-template-development.yaml"}, nil},
		{"machine-pools-of-docker", []string{docker + "/clusterclass-quick-start.yaml", docker + "/cluster-template-development-mp.yaml"}, nil},
		{"in-memory-of-docker", []string{docker + "/clusterclass-in-memory.yaml", docker + "/cluster-template-in-memory.yaml"}, nil},
		{"quick-start", []string{"main/clusterclass-quick-start.yaml", "main/bases/cluster-with-topology.yaml"}, nil},
		{"kcp-only", []string{"main/clusterclass-quick-start-kcp-only/", "main/cluster-template-topology-no-workers/"}, nil},
		{"taints", []string{"main/clusterclass-quick-start.yaml", "main/cluster-template-topology-taints/"}, nil},
		{"runtimesdk", []string{"main/clusterclass-quick-start-runtimesdk.yaml",
			"main/cluster-template-upgrades-runtimesdk/cluster-runtimesdk.yaml"}, direct},
		{"runtimesdk-v1beta1", []string{"main/clusterclass-quick-start-runtimesdk-v1beta1.yaml",
			"main/cluster-template-topology-runtimesdk-v1beta1/cluster-runtimesdk.yaml"}, direct},
		{"in-memory", []string{"main/clusterclass-in-memory.yaml", "main/cluster-template-in-memory-topology.yaml"}, direct},
		{"in-memory-v1.13", []string{"v1.13/clusterclass-in-memory.yaml", "v1.13/cluster-template-in-memory-topology.yaml"}, direct},
		{"in-memory-v1.12", []string{"v1.12/clusterclass-in-memory.yaml", "v1.12/cluster-template-in-memory-topology.yaml"}, direct},
		{"in-memory-v1.11", []string{"v1.11/clusterclass-in-memory.yaml", "v1.11/cluster-template-in-memory-topology.yaml"}, direct},
		{"through-the-gateway", []string{"./testdata/clusterclass.yaml", "./testdata/cluster.yaml"}, nil},
		{"naming", []string{"./testdata/render/naming.yaml"}, nil},
	}
}

// directly is Cluster API's name for the extension that it calls without the gateway.
const directly = "direct"

// TestRender renders Clusters from files, and compares every object with the one that the real topology controller has
// created from the same files. Then it changes one, and compares what the render says with what is done.
func TestRender(t *testing.T) {
	w := begin(t, true)
	w.startHub(filepath.Join(folder(t, "HOOKGATE_E2E_BIN"), "test-extension"))
	w.registerExtension(upstream, w.extension.port, map[string]any{
		"extensionConfigName": upstream, "disableInPlaceUpdates": "true", "defaultAllHandlersToBlocking": "false",
	})
	w.registerGateway(gateway)
	extension := &runtimev1.ExtensionConfig{ObjectMeta: objectMeta("", directly)}
	extension.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + loopback(w.extension.port), CABundle: w.ca}
	extension.Spec.Settings = map[string]string{
		"extensionConfigName": directly, "disableInPlaceUpdates": "true", "defaultAllHandlersToBlocking": "false",
	}
	w.create(extension)
	w.discovered("Cluster API discovered the extension", extensionConfig(runtimev1.GroupVersion.Group, directly))
	registered := filepath.Join(t.TempDir(), "extensionconfig.json")
	writeJSON(t, registered, map[string]any{"apiVersion": runtimev1.GroupVersion.String(), "kind": "ExtensionConfig",
		"metadata": map[string]any{"name": directly}, "spec": map[string]any{"settings": extension.Spec.Settings}})

	r := &renders{fixture: w, created: map[string]map[string]any{}}
	var all []*rendered
	for i, c := range renderCases(t) {
		ns, server := fmt.Sprintf("r%d", i), w.extension.port
		if c.name == "through-the-gateway" {
			ns, server = namespace, w.gateway.port // which calls the extension for this namespace alone
		} else {
			w.create(&corev1.Namespace{ObjectMeta: objectMeta("", ns)})
		}
		x := r.prepare(ns, c)
		x.flags = []string{
			"--feature-gates", featureGates, "--server", "https://" + loopback(server), "--ca", filepath.Join(w.certs, "ca.crt"),
			"--cert", filepath.Join(w.certs, "client.crt"), "--key", filepath.Join(w.certs, "client.key"),
		}
		if server == w.extension.port {
			x.flags = append(x.flags, "--registered-as", directly)
		}
		x.render(r, "-f", x.file, "-f", registered, "-o", "json")
		all = append(all, x)
	}
	r.watch(all)
	for _, x := range all {
		for _, o := range x.objects {
			w.create(o.DeepCopy())
		}
	}
	w.logf("%d Clusters are rendered, and created", len(all))
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) { x.compare(t, r) })
	}
	for _, x := range all {
		t.Run(x.name+"-live", func(t *testing.T) { x.compareLive(t, r) })
	}
	t.Run("change", func(t *testing.T) { all[len(all)-1].change(t, r) })
}
