// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caKey is the key of the authorities in a Secret, as cert-manager writes it.
const caKey = "ca.crt"

const (
	// managedByLabel has the value manager on Secrets that an Issuer has made.
	managedByLabel = "app.kubernetes.io/managed-by"
	manager        = "hookgate"
	// certManagerPrefix begins the annotations of objects that cert-manager writes.
	certManagerPrefix = "cert-manager.io/"
)

// pair is a certificate and its key in a Secret.
type pair struct {
	name   string
	secret *corev1.Secret // nil if there is none
	own    bool           // whether an Issuer has made the Secret
	cert   *x509.Certificate
	key    crypto.Signer
	bad    error               // why there is no usable certificate and key
	bundle []*x509.Certificate // of ca.crt
}

// data returns what the Secret has below a key.
func (p *pair) data(key string) []byte {
	if p.secret == nil {
		return nil
	}
	return p.secret.Data[key]
}

// get returns what a Secret has.
func (i *Issuer) get(ctx context.Context, name string) (*pair, error) {
	p, secret := &pair{name: name}, &corev1.Secret{}
	switch err := i.c.Client.Get(ctx, client.ObjectKey{Namespace: i.c.Namespace, Name: name}, secret); {
	case apierrors.IsNotFound(err):
		p.own, p.bad = true, err
		return p, nil
	case err != nil:
		return nil, i.explain("get", name, err)
	}
	p.secret, p.own = secret, secret.Labels[managedByLabel] == manager
	for annotation := range secret.Annotations {
		p.own = p.own && !strings.HasPrefix(annotation, certManagerPrefix)
	}
	if bundle := secret.Data[caKey]; len(bundle) > 0 {
		p.bundle, p.bad = cert.ParseCertsPEM(bundle)
	}
	if p.bad != nil {
		return p, nil //nolint:nilerr // it is in the pair
	}
	read, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		p.bad = err
		return p, nil //nolint:nilerr // as above
	}
	p.cert = read.Leaf
	p.key, _ = read.PrivateKey.(crypto.Signer)
	if now := i.c.Now(); now.After(p.cert.NotAfter) || now.Before(p.cert.NotBefore) {
		p.bad = x509.CertificateInvalidError{Cert: p.cert, Reason: x509.Expired}
	}
	return p, nil
}

// set writes the certificate, its key and authorities to the Secret, which it makes if there is none. The error is a
// conflict if another replica was first.
func (i *Issuer) set(ctx context.Context, p *pair, bundle []*x509.Certificate) error {
	data, err := p.encode(bundle)
	if err != nil {
		return fmt.Errorf("encode certificate of Secret %s/%s: %w", i.c.Namespace, p.name, err)
	}
	p.bundle = bundle
	if p.secret == nil {
		// Applied, not created: only so does a Role name what may be created. Replicas have names of their own, so that the
		// second one of two has a conflict.
		err := i.c.Client.Apply(ctx, corev1ac.Secret(p.name, i.c.Namespace).WithType(corev1.SecretTypeTLS).
			WithLabels(map[string]string{managedByLabel: manager}).WithData(data), client.FieldOwner(i.owner))
		if err != nil {
			return i.explain("make", p.name, err)
		}
		i.c.Logger.Info("certificate made", "name", p.name,
			"notAfter", p.cert.NotAfter.Format(time.RFC3339))
		p.secret = &corev1.Secret{Data: data}
		return nil
	}
	next := p.secret.DeepCopy()
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	maps.Copy(next.Data, data)
	if maps.EqualFunc(next.Data, p.secret.Data, bytes.Equal) {
		return nil
	}
	if err := i.c.Client.Update(ctx, next, client.FieldOwner(manager)); err != nil {
		return i.explain("update", p.name, err)
	}
	i.c.Logger.Info("certificate or its authorities replaced", "name", p.name,
		"notAfter", p.cert.NotAfter.Format(time.RFC3339))
	p.secret = next
	return nil
}

// encode returns the data of the Secret.
func (p *pair) encode(bundle []*x509.Certificate) (map[string][]byte, error) {
	chain, err := cert.EncodeCertificates(p.cert)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(p.key)
	if err != nil {
		return nil, err
	}
	authorities, err := cert.EncodeCertificates(bundle...)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key, caKey: authorities}, nil
}

// explain returns an error of the API server about a Secret, with what to do about it.
func (i *Issuer) explain(verb, name string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s Secret %s/%s: the gateway has no permission: apply the Role of "+
			"deploy/components/self-certificates: %w", verb, i.c.Namespace, name, err)
	}
	return fmt.Errorf("%s Secret %s/%s: %w", verb, i.c.Namespace, name, err)
}

// refuse returns the error about a Secret of others that cannot be used.
func (i *Issuer) refuse(p *pair, want string, why error) error {
	return fmt.Errorf("the Secret %s/%s has no %s: %w; the gateway does not change a Secret that it did not "+
		"make: correct the Secret, or delete it so that the gateway makes another", i.c.Namespace, p.name, want, why)
}

// ownerName returns the name of a replica as a writer of Secrets.
func ownerName() string { return manager + "-" + strings.ToLower(rand.Text()[:8]) }
