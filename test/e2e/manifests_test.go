// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// installed is what a provider of Cluster API installs, but for its Deployment, Service and certificates.
type installed struct {
	objects []client.Object // webhook configurations, and what says what the account may do
	crds    []*apiextensionsv1.CustomResourceDefinition
	account types.NamespacedName // the service account that it runs as
}

// manifests renders what a provider of Cluster API installs. Webhooks call port of 127.0.0.1 in place of the provider's
// Service.
func (w *fixture) manifests(kubectl, dir string, port int) installed {
	w.t.Helper()
	var stderr bytes.Buffer
	command := exec.Command(kubectl, "kustomize", dir)
	command.Stderr = &stderr
	rendered, err := command.Output()
	if err != nil {
		w.t.Fatalf("render %s: %v\n%s", dir, err, stderr.String())
	}
	var i installed
	for _, u := range decode(w.t, rendered) {
		switch u.GetKind() {
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			convert(w.t, u, crd)
			if c := crd.Spec.Conversion; c != nil && c.Webhook != nil {
				url := fmt.Sprintf("https://%s%s", loopback(port), *c.Webhook.ClientConfig.Service.Path)
				c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: w.ca}
			}
			i.crds = append(i.crds, crd)
		case "MutatingWebhookConfiguration":
			c := &admissionv1.MutatingWebhookConfiguration{}
			convert(w.t, u, c)
			for n := range c.Webhooks {
				w.redirect(&c.Webhooks[n].ClientConfig, port)
			}
			i.objects = append(i.objects, c)
		case "ValidatingWebhookConfiguration":
			c := &admissionv1.ValidatingWebhookConfiguration{}
			convert(w.t, u, c)
			for n := range c.Webhooks {
				w.redirect(&c.Webhooks[n].ClientConfig, port)
			}
			i.objects = append(i.objects, c)
		case "Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			i.objects = append(i.objects, u)
		case "Deployment":
			i.account.Namespace = u.GetNamespace()
			i.account.Name, _, _ = unstructured.NestedString(u.Object, "spec", "template", "spec", "serviceAccountName")
		}
	}
	if len(i.objects) == 0 || len(i.crds) == 0 || i.account.Name == "" {
		w.t.Fatalf("%s has %d objects and %d CRDs, and runs as %q", dir, len(i.objects), len(i.crds), i.account)
	}
	return i
}

func (w *fixture) redirect(c *admissionv1.WebhookClientConfig, port int) {
	url := fmt.Sprintf("https://%s%s", loopback(port), *c.Service.Path)
	*c = admissionv1.WebhookClientConfig{URL: &url, CABundle: w.ca}
}

// read returns the objects of a file.
func read(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

func decode(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			list = append(list, u)
		}
	}
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		t.Fatal(err)
	}
}

func objectMeta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name}
}
