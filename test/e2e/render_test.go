// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
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
}

// renders keeps objects as they were created.
type renders struct {
	*fixture
	mu      sync.Mutex
	created map[string]map[string]any // by kind, namespace and name
}

// rendered is a case with what the render makes of it.
type rendered struct {
	renderCase
	namespace, file string
	objects         []*unstructured.Unstructured // of the files, the Cluster last
	want            []*unstructured.Unstructured
	flags           []string // of each render
}

var placeholder = regexp.MustCompile(`\$\{([A-Z_0-9]+)(?::[-=]([^{}]*))?\}`)

// prepare reads the files of a case, with values for their variables.
func (r *renders) prepare(namespace string, c renderCase) *rendered {
	r.t.Helper()
	values := map[string]string{
		"CLUSTER_NAME": "c-" + namespace, "NAMESPACE": namespace, "CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
		"KUBERNETES_VERSION": "v1.35.5", "DOCKER_POD_CIDRS": "192.168.0.0/16", "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
		"DOCKER_SERVICE_DOMAIN": "cluster.local",
	}
	for k, v := range c.variables {
		values[k] = v
	}
	x := &rendered{renderCase: c, namespace: namespace, file: filepath.Join(r.t.TempDir(), namespace+".json")}
	var clusters []*unstructured.Unstructured
	var class string
	for _, name := range c.files {
		text := r.source(name)
		for range 3 { // they are nested
			text = placeholder.ReplaceAllStringFunc(text, func(match string) string {
				parts := placeholder.FindStringSubmatch(match)
				if v, ok := values[parts[1]]; ok {
					return v
				}
				return parts[2]
			})
		}
		for _, o := range decode(r.t, []byte(text)) {
			o.SetNamespace(namespace)
			switch o.GetKind() {
			case "Cluster":
				clusters = append(clusters, o)
			case "ClusterResourceSet", "ConfigMap":
			case "ClusterClass":
				class = o.GetName()
				fallthrough
			default:
				x.objects = append(x.objects, o)
			}
		}
	}
	if len(clusters) != 1 {
		r.t.Fatalf("%s has %d Clusters, want 1", c.name, len(clusters))
	}
	if ref, ok, _ := unstructured.NestedMap(clusters[0].Object, "spec", "topology", "classRef"); ok {
		ref["name"] = class // upstream's kustomizations lack one
		set(r.t, clusters[0], ref, "spec", "topology", "classRef")
	}
	x.objects = append(x.objects, clusters...)
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, o := range x.objects {
		list.Items = append(list.Items, *o)
	}
	writeJSON(r.t, x.file, list)
	return x
}

// source returns the text of a file, or of what kustomize makes of a folder.
func (r *renders) source(name string) string {
	r.t.Helper()
	if !strings.HasPrefix(name, ".") && !filepath.IsAbs(name) {
		dir := strings.HasSuffix(name, "/")
		name = filepath.Join(moduleDir(r.t, "sigs.k8s.io/cluster-api/test"), "e2e", "data", "infrastructure-docker", name)
		if dir {
			out, err := exec.Command(filepath.Join(folder(r.t, "KUBEBUILDER_ASSETS"), "kubectl"), "kustomize",
				"--load-restrictor", "LoadRestrictionsNone", name).Output()
			if err != nil {
				r.t.Fatalf("kustomize %s: %v", name, err)
			}
			return string(out)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	body, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hookgateRender runs the program, and returns what it printed and its exit status.
func (w *fixture) hookgateRender(args ...string) (string, int) {
	w.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(w.ctx, folder(w.t, "HOOKGATE_RENDER_BIN"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 1) {
		w.t.Errorf("hookgate-render %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// render renders the case.
func (x *rendered) render(r *renders, args ...string) {
	r.t.Helper()
	out, _ := r.hookgateRender(append(args, x.flags...)...)
	var list unstructured.UnstructuredList
	if out == "" {
		return
	}
	if err := list.UnmarshalJSON([]byte(out)); err != nil {
		r.t.Fatalf("%s: %v in\n%s", x.name, err, out)
	}
	for i := range list.Items {
		x.want = append(x.want, &list.Items[i])
	}
}

// watch keeps every object that is created from now on of the kinds that are expected, as it was then.
func (r *renders) watch(all []*rendered) {
	r.t.Helper()
	c, err := client.NewWithWatch(r.rest, client.Options{Scheme: r.Scheme()})
	if err != nil {
		r.t.Fatal(err)
	}
	seen := map[schema.GroupVersionKind]bool{clusterv1.GroupVersion.WithKind("Cluster"): true} // which exists before
	for _, x := range all {
		for _, o := range x.want {
			gvk := o.GroupVersionKind()
			if seen[gvk] {
				continue
			}
			seen[gvk] = true
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			events, err := c.Watch(r.ctx, list)
			if err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(events.Stop)
			go func() {
				for e := range events.ResultChan() {
					if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == watch.Added {
						r.mu.Lock()
						r.created[gvk.String()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
						r.mu.Unlock()
					}
				}
			}()
		}
	}
}

// find returns the object that a rendered one stands for; nil as long as there is none.
func (r *renders) find(x *rendered, want *unstructured.Unstructured) *unstructured.Unstructured {
	if want.GetKind() == "Cluster" {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(want.GroupVersionKind())
		if err := r.Get(r.ctx, client.ObjectKeyFromObject(want), o); err != nil {
			r.t.Fatal(err)
		}
		if ref, _, _ := unstructured.NestedString(o.Object, "spec", "controlPlaneRef", "name"); ref == "" {
			return nil
		}
		return o
	}
	name := strings.ReplaceAll(regexp.QuoteMeta(want.GetName()), "xxxxx", "[a-z0-9]{5}")
	key := regexp.MustCompile("^" + regexp.QuoteMeta(want.GroupVersionKind().String()+" "+x.namespace+"/") + name + "$")
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, o := range r.created {
		if key.MatchString(k) {
			return &unstructured.Unstructured{Object: o}
		}
	}
	return nil
}

// compare compares the objects.
func (x *rendered) compare(t *testing.T, r *renders) {
	if len(x.want) == 0 {
		t.Fatal("nothing was rendered")
	}
	found := make([]*unstructured.Unstructured, len(x.want))
	r.eventually(x.name+" has its objects", func() (string, bool) {
		var lacking []string
		for i, want := range x.want {
			if found[i] = r.find(x, want); found[i] == nil {
				lacking = append(lacking, want.GetKind()+" "+want.GetName())
			}
		}
		return "without " + strings.Join(lacking, ", "), len(lacking) == 0
	})
	var even []string
	for i, want := range x.want {
		if found[i].GetName() != want.GetName() {
			even = append(even, found[i].GetName(), want.GetName())
		}
	}
	replacer := strings.NewReplacer(even...)
	for i, want := range x.want {
		name := want.GetKind() + " " + want.GetName()
		if diff := cmp.Diff(comparable(t, want, strings.NewReplacer()), comparable(t, found[i], replacer)); diff != "" {
			t.Errorf("%s (-rendered +created):\n%s", name, diff)
		}
	}
}

// setByOthers are the values that others than Cluster API's topology controller set before an object can be seen, or that
// belong to lifecycle hooks, by kind; "" is all kinds. ~ stands for a dot.
var setByOthers = map[string][]string{
	"": {
		"status", "metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp",
		"metadata.managedFields", "metadata.finalizers",
		"metadata.annotations.cluster~x-k8s~io/conversion-data", // of objects that are stored in another version
	},
	// Lifecycle hooks that have not been called yet, and Cluster API's controller of Clusters.
	"Cluster": {"metadata.annotations.runtime~cluster~x-k8s~io/pending-hooks", "spec.controlPlaneEndpoint"},
	// Webhooks of the infrastructure provider.
	"DevCluster": {"spec.controlPlaneEndpoint.port"},
	// Conversion from v1beta2, in which references have no version, and the webhook, which is asked for that version.
	"KubeadmControlPlane v1beta1": {"spec.machineTemplate.infrastructureRef.apiVersion", "spec.rolloutStrategy.type"},
}

// compareLive sees that a render of the live Cluster finds nothing to change.
func (x *rendered) compareLive(t *testing.T, r *renders) {
	cluster := x.objects[len(x.objects)-1].GetName()
	r.eventually("nothing is to be changed", func() (string, bool) {
		out, status := r.hookgateRender(append([]string{
			"cluster/" + cluster, "-n", x.namespace, "--kubeconfig", r.kubeconfig, "--diff", "live", "-o", "yaml",
		}, x.flags...)...)
		return out, status == 0
	})
}

// comparable returns an object without what others have set, and without what is empty, which typed clients leave out.
func comparable(t *testing.T, o *unstructured.Unstructured, names *strings.Replacer) map[string]any {
	t.Helper()
	body, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal([]byte(names.Replace(string(body))), &c); err != nil {
		t.Fatal(err)
	}
	kind := o.GetKind()
	for _, path := range slices.Concat(setByOthers[""], setByOthers[kind], setByOthers[kind+" "+o.GroupVersionKind().Version]) {
		fields := strings.Split(path, ".")
		for i := range fields {
			fields[i] = strings.ReplaceAll(fields[i], "~", ".")
		}
		unstructured.RemoveNestedField(c, fields...)
	}
	metadata, _ := c["metadata"].(map[string]any)
	var owners []any
	all, _ := metadata["ownerReferences"].([]any)
	for _, owner := range all {
		owner, _ := owner.(map[string]any)
		if owner["kind"] == "Secret" { // it stands for the Cluster until the Cluster refers to the object
			continue
		}
		delete(owner, "uid")
		owners = append(owners, owner)
	}
	metadata["ownerReferences"] = owners
	return withoutEmpty(c).(map[string]any)
}

// withoutEmpty returns a value without the empty objects in it.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = withoutEmpty(v[k])
			if m, ok := v[k].(map[string]any); ok && len(m) == 0 {
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}
