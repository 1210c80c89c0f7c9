// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamlout "sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

// authorities are those of all manifests of extensions, by the Secret of their Certificate.
var authorities = map[string]*devcert.Authority{}

// authority returns the authority that a Secret would have.
func authority(secret string) (_ *devcert.Authority, err error) {
	if authorities[secret] == nil {
		authorities[secret], err = devcert.NewAuthority(time.Now().Add(lifetime))
	}
	return authorities[secret], err
}

// lifetime is how long all that is signed is valid.
const lifetime = 24 * time.Hour

// sign replaces the Certificates of extensions, because cert-manager cannot run here, by Secrets, each signed by the
// authority that its issuer has. The gateway makes its own.
func sign(manifests []byte) ([]byte, error) {
	var objects []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	var out bytes.Buffer
	write := func(o any) error {
		data, err := yamlout.Marshal(o)
		fmt.Fprintf(&out, "---\n%s", data)
		return err
	}
	var secrets []*corev1.Secret
	for _, o := range objects {
		if o.GetKind() != "Certificate" {
			continue
		}
		spec, name, err := certificate(o)
		if err != nil {
			return nil, err
		}
		a, err := authority(name)
		if err != nil {
			return nil, err
		}
		pair, err := a.Issue(time.Now().Add(lifetime), spec.DNSNames...)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: spec.SecretName, Namespace: o.GetNamespace()}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"ca.crt": pair.CAPEM, "tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
		})
	}
	for _, o := range objects {
		if o.GetAPIVersion() == "cert-manager.io/v1" {
			continue
		}
		if err := write(o.Object); err != nil {
			return nil, err
		}
	}
	for _, secret := range secrets { // after their namespaces
		if err := write(secret); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// certificateSpec is what the suite reads of a Certificate.
type certificateSpec struct {
	SecretName string
	IsCA       bool
	DNSNames   []string
	IssuerRef  struct{ Name string }
}

// certificate returns the spec of a Certificate, and the name of the authority that signs it.
func certificate(o *unstructured.Unstructured) (spec certificateSpec, signer string, err error) {
	data, err := yamlout.Marshal(o.Object["spec"])
	if err == nil {
		err = yamlout.Unmarshal(data, &spec)
	}
	if spec.IsCA {
		return spec, spec.SecretName, err
	}
	return spec, spec.IssuerRef.Name, err // which is that of its Secret
}

// signInstalled does what cert-manager would do in the cluster: it makes a Secret for each Certificate, and writes the CA
// where an annotation asks for it.
func signInstalled(t *testing.T) {
	t.Helper()
	list := func(kinds string) []unstructured.Unstructured {
		l := &unstructured.UnstructuredList{}
		if err := l.UnmarshalJSON([]byte(kubectl(t, "get", kinds, "-A", "-o", "json"))); err != nil {
			t.Fatal(err)
		}
		return l.Items
	}
	var manifests bytes.Buffer
	bundles := map[string][]byte{}
	for _, o := range list("certificates.cert-manager.io") {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&manifests, "---\n%s\n", text)
		_, name, err := certificate(&o)
		if err != nil {
			t.Fatal(err)
		}
		a, err := authority(name)
		if err != nil {
			t.Fatal(err)
		}
		bundles[o.GetNamespace()+"/"+o.GetName()] = a.PEM
	}
	secrets, err := sign(manifests.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, secrets)
	for _, o := range list("validatingwebhookconfigurations,mutatingwebhookconfigurations,customresourcedefinitions") {
		bundle := bundles[o.GetAnnotations()["cert-manager.io/inject-ca-from"]]
		if bundle == nil {
			continue
		}
		paths := []string{"/spec/conversion/webhook"}
		if o.GetKind() != "CustomResourceDefinition" {
			webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			paths = nil
			for i := range webhooks {
				paths = append(paths, fmt.Sprintf("/webhooks/%d", i))
			}
		}
		var patch []map[string]any
		for _, path := range paths {
			patch = append(patch, map[string]any{"op": "add", "path": path + "/clientConfig/caBundle", "value": bundle})
		}
		text, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		kubectl(t, "patch", o.GetKind(), o.GetName(), "--type=json", "-p", string(text))
	}
}
