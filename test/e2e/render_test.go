// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// compareLive sees that a render of the live Cluster finds nothing to change.
func (x *rendered) compareLive(t *testing.T, r *renders) {
	t.Helper()
	r.eventually("nothing is to be changed", func() (string, bool) { return x.live(r) })
}

// live renders the live Cluster, and reports whether there is no difference.
func (x *rendered) live(r *renders, more ...string) (out string, same bool) {
	r.t.Helper()
	args := append([]string{
		"cluster/" + x.cluster().GetName(), "-n", x.namespace, "--kubeconfig", r.kubeconfig, "--diff", "live", "-o", "json",
	}, more...)
	out, status := r.hookgateRender(append(args, x.flags...)...)
	return out, status == 0
}

func (x *rendered) cluster() *unstructured.Unstructured { return x.objects[len(x.objects)-1] }

// change renders a change of two variables of the Cluster in testdata/render/naming.yaml, makes it, and compares: one
// MachineDeployment has the value already.
func (x *rendered) change(t *testing.T, r *renders) {
	out, _ := x.live(r, "--set", "variables.zone=there", "--set", "variables.files=[{path: /etc/three}]")
	var result struct {
		Differences []struct {
			Object, Path string
			ChangedBy    []string
		}
		Machines []struct{ Object, Effect string }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	var said []string
	for _, d := range result.Differences {
		said = append(said, d.Object+d.Path+" by "+strings.Join(d.ChangedBy, ", "))
	}
	for _, m := range result.Machines {
		said = append(said, m.Object+" "+m.Effect)
	}
	if diff := cmp.Diff([]string{
		"ControlPlane/spec/kubeadmConfigSpec/files by patch files",
		"MachineDeployment/one/bootstrap/spec/template/spec/preKubeadmCommands by patch zone",
		"MachineDeployment/three/bootstrap/spec/template/spec/preKubeadmCommands by patch zone",
		"ControlPlane Replaced", "MachineDeployment/one Replaced", "MachineDeployment/two Unchanged", "MachineDeployment/three Replaced",
	}, said); diff != "" {
		t.Errorf("the render (-want +got):\n%s", diff)
	}

	templates := func() map[string]string {
		list := &clusterv1.MachineDeploymentList{}
		if err := r.List(r.ctx, list, client.InNamespace(x.namespace)); err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for _, md := range list.Items {
			names[md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] = md.Spec.Template.Spec.Bootstrap.ConfigRef.Name
		}
		return names
	}
	before := templates()
	c := &clusterv1.Cluster{}
	if err := r.Get(r.ctx, client.ObjectKeyFromObject(x.cluster()), c); err != nil {
		t.Fatal(err)
	}
	changed := c.DeepCopy()
	for i := range changed.Spec.Topology.Variables {
		switch v := &changed.Spec.Topology.Variables[i]; v.Name {
		case "zone":
			v.Value.Raw = []byte(`"there"`)
		case "files":
			v.Value.Raw = []byte(`[{"path": "/etc/three"}]`)
		}
	}
	if err := r.Patch(r.ctx, changed, client.MergeFrom(c)); err != nil {
		t.Fatal(err)
	}
	x.compareLive(t, r)
	after := templates()
	for name, template := range before {
		if rotated := template != after[name]; rotated != (name != "two") {
			t.Errorf("MachineDeployment %s has template %s, and had %s", name, after[name], template)
		}
	}
}
