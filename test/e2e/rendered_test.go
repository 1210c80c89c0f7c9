// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	maps.Copy(values, c.variables)
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
		if diff := cmp.Diff(compared(t, want, strings.NewReplacer()), compared(t, found[i], replacer)); diff != "" {
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

// compared returns an object without what others have set, and without what is empty, which typed clients leave out.
func compared(t *testing.T, o *unstructured.Unstructured, names *strings.Replacer) map[string]any {
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
