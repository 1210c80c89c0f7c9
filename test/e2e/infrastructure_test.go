// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tally counts things of the fake cloud.
type tally struct{ Exist, Created, Deleted int }

// counts is what the fake cloud has counted since it started.
type counts struct {
	Networks, Machines tally
	// Repeated has the keys for which a machine was made more than once.
	Repeated map[string]int
}

// TestInfrastructure runs a Cluster of the release's template, whose infrastructure an extension of four functions makes
// in a fake cloud: the real Cluster API and its kubeadm providers scale, upgrade and delete it, while the extension is
// killed again and again.
func TestInfrastructure(t *testing.T) {
	began := time.Now()
	say := func(format string, args ...any) {
		t.Helper()
		t.Logf("%4.0fs  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	w := begin(t, false)
	cloud := w.startCloud()
	w.startProvider()
	w.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.hookgate.dev/v1alpha1", "kind": "InfrastructureClass",
		"metadata": map[string]any{"name": "cloud"},
		"spec":     map[string]any{"extensionRef": map[string]any{"name": "cloud"}},
	}})
	w.eventually("the class is ready", func() (string, bool) { return w.conditionOf("InfrastructureClass", "", "cloud", "Ready") })
	say("the class knows its extension")

	for _, o := range w.template("cluster-template.yaml", map[string]string{
		"CLUSTER_NAME": clusterKey.Name, "NAMESPACE": namespace, "KUBERNETES_VERSION": oldVersion,
		"HOOKGATE_INFRASTRUCTURE_CLASS": "cloud", "HOOKGATE_WORKER_PARAMETERS": "size: large",
	}) {
		w.create(o)
	}
	w.await(1, 1, oldVersion)
	say("one control plane machine and one worker run")

	kills := 0
	w.meanwhile = func() {
		if rand.IntN(15) == 0 { // every few seconds
			w.killExtension()
			kills++
		}
	}
	w.scale("KubeadmControlPlane", "c-control-plane", 3)
	w.scale("MachineDeployment", "c-md-0", 2)
	w.await(3, 2, oldVersion)
	say("three control plane machines and two workers run")

	w.setVersion(newVersion)
	w.await(3, 2, newVersion)
	say("all machines were replaced by those of %s", newVersion)
	w.meanwhile = nil
	if kills == 0 {
		t.Error("the extension was never killed")
	}
	say("the extension was killed %d times", kills)

	if err := w.Delete(w.ctx, w.cluster()); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Cluster is gone", func() (string, bool) {
		err := w.Get(w.ctx, clusterKey, &clusterv1.Cluster{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	got := cloud()
	if got.Networks != (tally{0, 1, 1}) || got.Machines.Exist != 0 || got.Machines.Created != got.Machines.Deleted || len(got.Repeated) > 0 {
		t.Errorf("the cloud has counted %+v", got)
	}
	say("the cloud is empty; it has made %d machines, each once", got.Machines.Created)
}

// startCloud starts the fake cloud, and returns a function that returns what it has counted.
func (w *world) startCloud() func() counts {
	w.t.Helper()
	port := freePort(w.t)
	url := "http://" + loopback(port)
	w.t.Setenv("CLOUD_URL", url)
	w.launch("fake-cloud", folder(w.t, "HOOKGATE_CLOUD"), "--listen", loopback(port))
	ask := func() (counts, error) {
		var c counts
		resp, err := http.Get(url + "/counts")
		if err != nil {
			return c, err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return c, err
		}
		return c, json.Unmarshal(body, &c)
	}
	w.eventually("the cloud answers", func() (string, bool) {
		_, err := ask()
		return fmt.Sprint(err), err == nil
	})
	return func() counts {
		w.t.Helper()
		c, err := ask()
		if err != nil {
			w.t.Fatal(err)
		}
		return c
	}
}

// startProvider starts the extension, a gateway, and the controllers of the infrastructure provider.
func (w *world) startProvider() {
	w.t.Helper()
	hookgate := folder(w.t, "HOOKGATE_BIN")
	w.extension = newServer(w.t)
	w.extension.start = func() *process {
		return w.launch("extension", "python3", filepath.Join("..", "..", "examples", "infrastructure", "python", "main.py"),
			loopback(w.extension.port), w.certs)
	}
	w.gateway = newServer(w.t)
	grpc := freePort(w.t)
	w.gateway.start = func() *process {
		return w.launch("hookgate", hookgate, "serve", "--kubeconfig", w.kubeconfig, "--extension-config-group", ownGroup,
			"--cert-dir", w.certs, "--allowed-client-names", caller, "--http-address", loopback(w.gateway.port),
			"--grpc-address", loopback(grpc), "--diagnostics-address", loopback(w.gateway.diagnostics),
			"--health-addr", loopback(w.gateway.health), "--gateway-address", loopback(w.gateway.port))
	}
	provider := newServer(w.t)
	provider.start = func() *process {
		return w.launch("hookgate-infrastructure", hookgate, "infrastructure", "--kubeconfig", w.kubeconfig,
			"--gateway", "grpcs://"+loopback(grpc), "--ca", filepath.Join(w.certs, "ca.crt"),
			"--cert", filepath.Join(w.certs, "client.crt"), "--key", filepath.Join(w.certs, "client.key"),
			"--diagnostics-address", loopback(provider.diagnostics), "--health-addr", loopback(provider.health))
	}
	w.extension.process = w.extension.start()
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	w.registerExtension("cloud", w.extension.port, nil)
	provider.process = provider.start()
	w.ready(provider)
}

// killExtension kills the extension, in the middle of whatever it does, and starts it again.
func (w *world) killExtension() {
	w.t.Helper()
	old := w.extension.process
	w.running = slices.DeleteFunc(w.running, func(p *process) bool { return p == old })
	_ = old.cmd.Process.Kill()
	<-old.done
	w.extension.process = w.extension.start()
}

// variable is a variable of clusterctl's templates, with its default.
var variable = regexp.MustCompile(`\$\{([A-Z_]+)(?::=([^}]*))?\}`)

// template returns the objects of a template of the release, as clusterctl makes them.
func (w *world) template(name string, values map[string]string) []*unstructured.Unstructured {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "release", "infrastructure", name))
	if err != nil {
		w.t.Fatal(err)
	}
	return decode(w.t, []byte(variable.ReplaceAllStringFunc(string(text), func(v string) string {
		m := variable.FindStringSubmatch(v)
		if value, ok := values[m[1]]; ok {
			return value
		}
		return m[2]
	})))
}

// await waits until the Cluster has so many machines with Nodes, all of this version.
func (w *world) await(controlPlane, workers int, version string) {
	w.t.Helper()
	what := fmt.Sprintf("%d and %d machines of %s run", controlPlane, workers, version)
	w.eventuallyWithin(6*time.Minute, what, func() (string, bool) {
		if w.meanwhile != nil {
			w.meanwhile()
		}
		have, saw := w.joined(version)
		return saw, have == counted{controlPlane, workers}
	})
}

// counted counts Machines.
type counted struct{ controlPlane, workers int }

// joined counts the Machines of a version that have Nodes, and says what else there is.
func (w *world) joined(version string) (counted, string) {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
		return counted{}, err.Error()
	}
	var have counted
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.Version != version || !m.DeletionTimestamp.IsZero() || m.Status.NodeRef.Name == "" {
			return counted{}, fmt.Sprintf("Machine %s: version %s, phase %s, %v", m.Name, m.Spec.Version, m.Status.Phase,
				meta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition))
		}
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			have.controlPlane++
		} else {
			have.workers++
		}
	}
	return have, fmt.Sprintf("%+v", have)
}

func (w *world) get(apiGroup, kind, ns, name string) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiGroup)
	o.SetKind(kind)
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
		w.t.Fatalf("get %s %s: %v", kind, name, err)
	}
	return o
}

// conditionOf returns a condition of one of the provider's objects, and reports whether it is True.
func (w *world) conditionOf(kind, ns, name, condition string) (string, bool) {
	w.t.Helper()
	list, _, _ := unstructured.NestedSlice(w.get("infrastructure.hookgate.dev/v1alpha1", kind, ns, name).Object, "status", "conditions")
	for _, c := range list {
		if c, _ := c.(map[string]any); c["type"] == condition {
			return fmt.Sprint(c), c["status"] == "True"
		}
	}
	return fmt.Sprint("no condition ", condition, " among ", list), false
}

func groupOf(kind string) string {
	if kind == "KubeadmControlPlane" {
		return "controlplane.cluster.x-k8s.io/v1beta2"
	}
	return clusterv1.GroupVersion.String()
}

// scale sets the replicas of an object.
func (w *world) scale(kind, name string, replicas int64) {
	w.t.Helper()
	w.patch(kind, name, replicas, "spec", "replicas")
}

// setVersion upgrades the control plane and the workers.
func (w *world) setVersion(version string) {
	w.t.Helper()
	w.patch("KubeadmControlPlane", "c-control-plane", version, "spec", "version")
	w.patch("MachineDeployment", "c-md-0", version, "spec", "template", "spec", "version")
}

func (w *world) patch(kind, name string, value any, path ...string) {
	w.t.Helper()
	before := w.get(groupOf(kind), kind, namespace, name)
	after := before.DeepCopy()
	if err := unstructured.SetNestedField(after.Object, value, path...); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Patch(w.ctx, after, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("set %s of %s %s: %v", strings.Join(path, "."), kind, name, err)
	}
}

// infrastructureCRDs reads the CRDs of the infrastructure provider.
func (w *world) infrastructureCRDs() []*apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "crd", "infrastructure", "infrastructure.hookgate.dev_*.yaml"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("%d CRDs of the provider: %v", len(files), err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		convert(w.t, read(w.t, file)[0], crd)
		list = append(list, crd)
	}
	return list
}
