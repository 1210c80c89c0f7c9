// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestChainOfPatches makes a Cluster of a class whose single patch is a chain of three handlers, in Python, JavaScript
// and Go, and one of a class with three patches of their own. Their templates are equal.
func TestChainOfPatches(t *testing.T) {
	w := begin(t, true)
	python, javascript := freePort(t), freePort(t)
	w.launch("patches-python", "python3", "testdata/patches.py", strconv.Itoa(python), w.certs)
	w.launch("patches-javascript", "node", "testdata/patches.mjs", strconv.Itoa(javascript), w.certs)
	d := w.startDirectory(map[string]int{
		"python": python, "javascript": javascript, "go": w.serve(handler{"file", "GeneratePatches", answering(w, patchFile)}),
	})
	word := map[string]any{"word": "javascript"}
	d.chain("three-languages", "GeneratePatches", map[string]any{"steps": []any{
		map[string]any{"handler": "commands.python"}, map[string]any{"handler": "commands.javascript", "settings": word},
		map[string]any{"handler": "file.go"},
	}})
	d.discovered()
	w.registerGateway(gateway)
	w.logf("Cluster API has discovered the chain, and the handlers that it consists of")

	external := func(name string, settings map[string]any) any {
		patch := map[string]any{"generatePatchesExtension": name + "." + gateway}
		if settings != nil {
			patch["settings"] = settings
		}
		return map[string]any{"name": strings.ReplaceAll(name, "--", "-"), "external": patch}
	}
	w.createClass("chained", external("three-languages", nil))
	w.createClass("apart", external("commands--python", nil), external("commands--javascript", word), external("file--go", nil))
	for _, name := range []string{"chained", "apart"} {
		c := read(t, "testdata/cluster.yaml")[0]
		c.SetName(name)
		set(t, c, name, "spec", "topology", "classRef", "name")
		set(t, c, int64(1), "spec", "topology", "controlPlane", "replicas")
		unstructured.RemoveNestedField(c.Object, "spec", "topology", "variables")
		w.create(c)
	}
	var chained map[string]any
	w.eventually("both Clusters have their templates", func() (string, bool) {
		chained = w.templatesOf("chained")
		n := len(w.templatesOf("apart"))
		return fmt.Sprintf("%d and %d", len(chained), n), len(chained) == 4 && n == 4
	})
	if diff := cmp.Diff(w.templatesOf("apart"), chained); diff != "" {
		t.Errorf("templates (-three patches +chain):\n%s", diff)
	}
	got, _, _ := unstructured.NestedMap(chained["KubeadmControlPlane "].(map[string]any), "kubeadmConfigSpec")
	want := map[string]any{
		"preKubeadmCommands": []any{"python", "javascript"},
		"files":              []any{map[string]any{"path": "/etc/commands", "content": "python javascript"}},
	}
	for _, member := range []string{"preKubeadmCommands", "files"} {
		if diff := cmp.Diff(want[member], got[member]); diff != "" {
			t.Errorf("%s of the control plane (-want +got):\n%s", member, diff)
		}
	}
	calls := w.gateway.scrape(t, "hookgate_handler_calls_total")
	for _, name := range []string{"three-languages", "commands.python", "commands.javascript", "file.go"} {
		if all, good := total(calls, "handler", name), total(calls, "handler", name, "outcome", "success"); all == 0 || all != good {
			t.Errorf("%s was called %d times, %d of them with success", name, all, good)
		}
	}
}

// patchFile adds a file with the commands that run before kubeadm, as those before it have patched them.
func patchFile(r *runtimehooksv1.GeneratePatchesRequest, a *runtimehooksv1.GeneratePatchesResponse) error {
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("GeneratePatchesResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	for _, item := range r.Items {
		template := &unstructured.Unstructured{}
		if err := json.Unmarshal(item.Object.Raw, template); err != nil {
			return err
		}
		path := []string{"spec", "template", "spec", "kubeadmConfigSpec"}
		switch template.GetKind() {
		case "KubeadmConfigTemplate":
			path = path[:3]
		case "KubeadmControlPlaneTemplate":
		default:
			continue
		}
		commands, _, err := unstructured.NestedStringSlice(template.Object, append(path, "preKubeadmCommands")...)
		if err != nil {
			return err
		}
		file := map[string]any{"path": "/etc/commands", "content": strings.Join(commands, " ")}
		patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/" + strings.Join(path, "/") + "/files", "value": []any{file}}})
		if err != nil {
			return err
		}
		a.Items = append(a.Items, runtimehooksv1.GeneratePatchesResponseItem{UID: item.UID, PatchType: runtimehooksv1.JSONPatchType, Patch: patch})
	}
	return nil
}

// createClass creates the ClusterClass of testdata with a name and patches, and its templates unless they exist.
func (w *fixture) createClass(name string, patches ...any) {
	w.t.Helper()
	for _, o := range read(w.t, "testdata/clusterclass.yaml") {
		if o.GetKind() != "ClusterClass" {
			if err := w.Create(w.ctx, o); client.IgnoreAlreadyExists(err) != nil {
				w.t.Fatal(err)
			}
			continue
		}
		o.SetName(name)
		set(w.t, o, patches, "spec", "patches")
		unstructured.RemoveNestedField(o.Object, "spec", "upgrade")
		w.create(o)
	}
}

// templatesOf returns what Cluster API has made of the templates of a Cluster's class: spec by kind and
// MachineDeployment. It leaves out references, whose names are other ones in each Cluster.
func (w *fixture) templatesOf(cluster string) map[string]any {
	w.t.Helper()
	found := map[string]any{}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
		{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfigTemplate"},
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachineTemplate"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := w.List(w.ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
			w.t.Fatal(err)
		}
		for _, o := range list.Items {
			spec, _ := o.Object["spec"].(map[string]any)
			unstructured.RemoveNestedField(spec, "machineTemplate", "spec", "infrastructureRef")
			unstructured.RemoveNestedField(spec, "machineTemplate", "metadata") // has the name of the Cluster
			found[gvk.Kind+" "+o.GetLabels()[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] = spec
		}
	}
	return found
}

// directory is the folder of manifests that a gateway reads.
type directory struct {
	w          *fixture
	path       string
	extensions []string
}

// startDirectory starts a gateway that reads a folder, which has ExtensionConfigs for extensions at these ports, with more
// flags.
func (w *fixture) startDirectory(extensions map[string]int, flags ...string) *directory {
	w.t.Helper()
	d := &directory{w: w, path: w.t.TempDir()}
	for name, port := range extensions {
		d.extension(name, port)
	}
	w.gateway = newServer(w.t)
	w.gateway.start = func() *process {
		return w.launch("hookgate", folder(w.t, "HOOKGATE_BIN"), append([]string{"serve", "--extension-configs", d.path, "--cert-dir", w.certs,
			"--allowed-client-names", caller, "--http-address", loopback(w.gateway.port), "--grpc-address", loopback(0),
			"--diagnostics-address", loopback(w.gateway.diagnostics), "--health-addr", loopback(w.gateway.health)}, flags...)...)
	}
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	return d
}

// extension adds an ExtensionConfig.
func (d *directory) extension(name string, port int) {
	d.w.t.Helper()
	d.extensions = append(d.extensions, name)
	d.write(object("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig", name, map[string]any{
		"clientConfig": map[string]any{"url": "https://" + loopback(port), "caBundle": d.w.ca},
	}))
}

// chain adds a HandlerChain, or replaces it.
func (d *directory) chain(name, hook string, spec map[string]any) {
	d.w.t.Helper()
	spec["hook"] = hook
	d.write(object("hookgate.dev/v1alpha1", "HandlerChain", name, spec))
}

// write writes an object to a file, which the gateway sees as a whole or not at all.
func (d *directory) write(o *unstructured.Unstructured) {
	d.w.t.Helper()
	text, err := json.Marshal(o.Object) // JSON is YAML
	file := filepath.Join(d.path, strings.ToLower(o.GetKind())+"-"+o.GetName()+".yaml")
	if err == nil {
		err = os.WriteFile(file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		d.w.t.Fatal(err)
	}
}

// discovered waits until the gateway knows the handlers of all extensions.
func (d *directory) discovered() {
	d.w.t.Helper()
	d.w.eventually("the gateway has discovered its extensions", func() (string, bool) {
		counts := d.w.gateway.scrape(d.w.t, "hookgate_discoveries_total")
		for _, name := range d.extensions {
			if total(counts, "extension", name, "outcome", "Success") == 0 {
				return name, false
			}
		}
		return "", true
	})
}
