// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownNamespace is the namespace of Hookgate.
const ownNamespace = "hookgate-system"

// The providers of infrastructure, and their InfrastructureClasses.
const (
	inPython = "python"
	inGo     = "go"
	inPools  = "pools" // in Go, whose pools are groups of the cloud
)

// startCloud starts the fake cloud, and returns its URL.
func (w *fixture) startCloud() string {
	w.t.Helper()
	address := loopback(freePort(w.t))
	w.launch("fake-cloud", folder(w.t, "HOOKGATE_CLOUD"), "--listen", address)
	url := "http://" + address
	w.eventually("the cloud answers", func() (string, bool) {
		err := get(url+"/counts", &counts{})
		return fmt.Sprint(err), err == nil
	})
	return url
}

// startProviders starts a gateway, the providers in Python and Go with their classes, and the controllers of
// infrastructure. It returns the providers.
func (w *fixture) startProviders(cloud string) []*server {
	w.t.Helper()
	return w.startProvidersOf(cloud, inPython, inGo)
}

// startProvidersOf is startProviders with these providers.
func (w *fixture) startProvidersOf(cloud string, names ...string) []*server {
	w.t.Helper()
	w.env = append(w.env, "CLOUD_URL="+cloud)
	hookgate := folder(w.t, "HOOKGATE_BIN")
	examples := filepath.Join("..", "..", "examples", "infrastructure")
	var providers []*server
	for _, name := range names {
		s := newServer(w.t)
		providers = append(providers, s)
		command := map[string][]string{
			inPython: {filepath.Join(examples, "python", "run")}, inEC2: {filepath.Join(examples, "ec2", "run")},
			inGo: {folder(w.t, "HOOKGATE_PROVIDER")}, inPools: {folder(w.t, "HOOKGATE_PROVIDER"), "-pools"},
		}[name]
		s.start = func() *process {
			return w.launch("provider-"+name, command[0], append(command[1:], loopback(s.port), w.certs)...)
		}
	}
	w.gateway = newServer(w.t)
	grpc := freePort(w.t)
	w.gateway.start = func() *process {
		return w.launch("hookgate", hookgate, "serve", "--kubeconfig", w.kubeconfig, "--extension-config-group", ownGroup,
			"--cert-dir", w.certs, "--allowed-client-names", caller, "--http-address", loopback(w.gateway.port),
			"--grpc-address", loopback(grpc), "--diagnostics-address", loopback(w.gateway.diagnostics),
			"--health-addr", loopback(w.gateway.health), "--gateway-address", loopback(w.gateway.port))
	}
	w.infrastructure = newServer(w.t)
	w.infrastructure.kubeconfig = w.as(ownNamespace, "hookgate-infrastructure")
	w.infrastructure.start = func() *process {
		return w.launch("hookgate-infrastructure", hookgate, "infrastructure", "--kubeconfig", w.infrastructure.kubeconfig,
			"--gateway", "grpcs://"+loopback(grpc), "--ca", filepath.Join(w.certs, "ca.crt"),
			"--cert", filepath.Join(w.certs, "client.crt"), "--key", filepath.Join(w.certs, "client.key"),
			"--diagnostics-address", loopback(w.infrastructure.diagnostics), "--health-addr", loopback(w.infrastructure.health))
	}
	for _, s := range slices.Concat(providers, []*server{w.gateway}) {
		s.process = s.start()
	}
	w.ready(w.gateway)
	for i, name := range names {
		w.create(object("hookgate.dev/v1alpha1", "ExtensionPolicy", name, map[string]any{
			"targetRef": map[string]any{"name": name}, "protocol": "GRPC",
		}))
		w.registerExtension(name, providers[i].port, nil)
	}
	w.infrastructure.process = w.infrastructure.start()
	w.ready(w.infrastructure)
	for _, name := range names {
		w.create(object("infrastructure.hookgate.dev/v1alpha1", "InfrastructureClass", name, map[string]any{
			"extensionRef": map[string]any{"name": name},
		}))
		w.eventually("the class "+name+" is ready", func() (string, bool) {
			return w.conditionOf("InfrastructureClass", "", name, "Ready")
		})
	}
	return providers
}

// kill kills a process, in the middle of whatever it does, and starts it again.
func (w *fixture) kill(s *server) {
	w.t.Helper()
	w.end(s)
	s.process = s.start()
}

// end kills a process, in the middle of whatever it does.
func (w *fixture) end(s *server) {
	old := s.process
	w.running = slices.DeleteFunc(w.running, func(p *process) bool { return p == old })
	_ = old.cmd.Process.Kill()
	<-old.done
}

// object returns an object of the cluster scope.
func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

// variable is a variable of clusterctl's templates, with its default.
var variable = regexp.MustCompile(`\$\{([A-Z_]+)(?::=([^}]*))?\}`)

// template returns the objects of a template of the release, as clusterctl makes them.
func (w *fixture) template(name string, values map[string]string) []*unstructured.Unstructured {
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

func (w *fixture) get(apiGroup, kind, ns, name string) *unstructured.Unstructured {
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
func (w *fixture) conditionOf(kind, ns, name, condition string) (string, bool) {
	w.t.Helper()
	list, _, _ := unstructured.NestedSlice(w.get("infrastructure.hookgate.dev/v1alpha1", kind, ns, name).Object, "status", "conditions")
	for _, c := range list {
		if c, _ := c.(map[string]any); c["type"] == condition {
			return fmt.Sprint(c), c["status"] == "True"
		}
	}
	return fmt.Sprint("no condition ", condition, " among ", list), false
}

func (w *fixture) patch(kind, name string, value any, path ...string) {
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

func groupOf(kind string) string {
	if kind == "KubeadmControlPlane" {
		return "controlplane.cluster.x-k8s.io/v1beta2"
	}
	return clusterv1.GroupVersion.String()
}

// infrastructureCRDs reads the CRDs of the infrastructure provider.
func (w *fixture) infrastructureCRDs() []*apiextensionsv1.CustomResourceDefinition {
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

// infrastructureRoles returns the roles of the infrastructure provider, and those that Cluster API aggregates.
func (w *fixture) infrastructureRoles() []client.Object {
	w.t.Helper()
	list := []client.Object{&corev1.Namespace{ObjectMeta: objectMeta("", ownNamespace)}}
	for _, o := range read(w.t, filepath.Join("..", "..", "deploy", "infrastructure", "rbac.yaml")) {
		if o.GetKind() == "Role" || o.GetKind() == "RoleBinding" {
			o.SetNamespace(ownNamespace) // as kustomize does
		}
		list = append(list, o)
	}
	return list
}

// calm checks that the programs had the rights that they need for Hookgate's kinds, and that ordinary conflicts are no
// errors in the log of the provider.
func (w *fixture) calm() {
	w.t.Helper()
	for _, name := range []string{"core", "kubeadm-bootstrap", "kubeadm-control-plane", "hookgate-infrastructure"} {
		log, err := os.ReadFile(filepath.Join(w.logs, name+".log"))
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			forbidden := strings.Contains(line, "is forbidden") && strings.Contains(line, "infrastructure.hookgate.dev")
			conflict := name == "hookgate-infrastructure" && strings.Contains(line, "ERROR") &&
				strings.Contains(line, "the object has been modified")
			if forbidden || conflict {
				w.t.Errorf("%s: %s", name, line)
			}
		}
	}
}
