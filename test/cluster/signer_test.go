// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamlout "sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

// authorities are those of all manifests, by the Secret of their Certificate.
var authorities = map[string]*devcert.Authority{}

// sign replaces what is for cert-manager in manifests, which cannot run here: Secrets in place of Certificates, each signed
// by the authority that its issuer has, and that authority where an annotation asks for it.
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
	end := time.Now().Add(24 * time.Hour)
	of := func(secret string) (*devcert.Authority, error) {
		var err error
		if authorities[secret] == nil {
			authorities[secret], err = devcert.NewAuthority(end)
		}
		return authorities[secret], err
	}
	caBundle := ""
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
		var spec struct {
			SecretName string
			IsCA       bool
			DNSNames   []string
			IssuerRef  struct{ Name string }
		}
		data, err := yamlout.Marshal(o.Object["spec"])
		if err == nil {
			err = yamlout.Unmarshal(data, &spec)
		}
		if err != nil {
			return nil, err
		}
		name := spec.IssuerRef.Name // which is that of its Secret
		if spec.IsCA {
			name = spec.SecretName
		}
		a, err := of(name)
		if err != nil {
			return nil, err
		}
		pair, err := a.Issue(end, spec.DNSNames...)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: spec.SecretName, Namespace: o.GetNamespace()}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"ca.crt": pair.CAPEM, "tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
		})
		if spec.SecretName == "hookgate-webhook-cert" {
			caBundle = base64.StdEncoding.EncodeToString(pair.CAPEM)
		}
	}
	for _, o := range objects {
		if o.GetAPIVersion() == "cert-manager.io/v1" {
			continue
		}
		if _, ok := o.GetAnnotations()["cert-manager.io/inject-ca-from"]; ok {
			inject(o.Object, caBundle)
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

// inject sets the authority in each clientConfig.
func inject(value any, caBundle string) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if config, ok := member.(map[string]any); ok && name == "clientConfig" {
				config["caBundle"] = caBundle
			} else if name != "schema" {
				inject(member, caBundle)
			}
		}
	case []any:
		for _, element := range v {
			inject(element, caBundle)
		}
	}
}
