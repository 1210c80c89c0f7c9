// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/yaml"
)

// Where kubeadm has authorities.
const (
	clusterAuthority = "/etc/kubernetes/pki/ca"
	etcdAuthority    = "/etc/kubernetes/pki/etcd/ca"
)

const maxDocuments = 16

// separator is the line between two documents of YAML.
var separator = regexp.MustCompile(`(?m)^---[ \t]*$`)

// clusterConfiguration, initConfiguration and joinConfiguration are what is read of kubeadm's kinds, v1beta3 and
// v1beta4.
type clusterConfiguration struct {
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	Etcd                 struct {
		External *struct{} `json:"external"`
	} `json:"etcd"`
	raw string
}

type initConfiguration struct {
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
}

type joinConfiguration struct {
	ControlPlane     *struct{}        `json:"controlPlane"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
	Discovery        struct {
		BootstrapToken *struct {
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			Token             string   `json:"token"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
}

type nodeRegistration struct {
	Name             string          `json:"name"`
	Taints           *[]corev1.Taint `json:"taints"`
	KubeletExtraArgs arguments       `json:"kubeletExtraArgs"`
}

// arguments are a list of names and values since v1beta4, and were a map before.
type arguments map[string]string

// UnmarshalJSON reads both forms.
func (a *arguments) UnmarshalJSON(data []byte) error {
	var list []struct{ Name, Value string }
	if json.Unmarshal(data, &list) != nil {
		return json.Unmarshal(data, (*map[string]string)(a))
	}
	*a = arguments{}
	for _, argument := range list {
		(*a)[argument.Name] = argument.Value
	}
	return nil
}

// kubeadmDocuments returns the documents of kubeadm's configuration by kind.
func kubeadmDocuments(config []byte) (map[string]string, error) {
	parts := separator.Split(string(config), maxDocuments+1)
	if len(parts) > maxDocuments {
		return nil, fmt.Errorf("kubeadm's configuration has more than %d documents", maxDocuments)
	}
	documents := map[string]string{}
	for _, part := range parts {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(part), &head); err != nil {
			return nil, fmt.Errorf("kubeadm's configuration: %w", err)
		}
		if head.Kind != "" {
			documents[head.Kind] = part
		}
	}
	return documents, nil
}

// readDocument decodes the document of this kind.
func readDocument(documents map[string]string, kind string, into any) error {
	document, ok := documents[kind]
	if !ok {
		return fmt.Errorf("kubeadm's configuration has no %s", kind)
	}
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		return fmt.Errorf("kubeadm's %s: %w", kind, err)
	}
	return nil
}

// authority is a certificate authority with its key.
type authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
	pem         []byte
}

// readAuthority returns the authority in the files path.crt and path.key.
func readAuthority(files map[string][]byte, path string) (*authority, error) {
	for _, name := range []string{path + ".crt", path + ".key"} {
		if len(files[name]) == 0 {
			return nil, fmt.Errorf("%s is not among the files", name)
		}
	}
	certificate, err := certs.DecodeCertPEM(files[path+".crt"])
	if err != nil {
		return nil, fmt.Errorf("%s.crt: %w", path, err)
	}
	if certificate == nil {
		return nil, fmt.Errorf("%s.crt: no certificate", path)
	}
	signer, err := certs.DecodePrivateKeyPEM(files[path+".key"])
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", path, err)
	}
	key, ok := signer.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s.key: only RSA keys work here", path)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, fmt.Errorf("%s.key is not the key of %s.crt", path, path)
	}
	return &authority{certificate: certificate, key: key, pem: files[path+".crt"]}, nil
}

// hash returns the hash by which a joining machine knows the authority.
func (a *authority) hash() string {
	sum := sha256.Sum256(a.certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// sameAuthority returns an error unless the files have this authority, with its key.
func (a *authority) sameAuthority(files map[string][]byte, path string) error {
	theirs, err := readAuthority(files, path)
	if err != nil {
		return err
	}
	if !theirs.certificate.Equal(a.certificate) {
		return errors.New(path + ".crt is not the cluster's")
	}
	return nil
}
