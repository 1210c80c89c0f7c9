// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// caKey is the key of the certificates in a Secret, as cert-manager writes it.
const caKey = "ca.crt"

// caBundle returns the CA in the Secret that an annotation of config names: nil without that annotation, and a
// complaint if the Secret has none. An error means that the API server did not say.
func (r *reconciler) caBundle(
	ctx context.Context, config *runtimev1.ExtensionConfig,
) (ca []byte, complaint string, err error) {
	reference, ok := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if !ok {
		return nil, "", nil
	}
	complain := func(format string, args ...any) ([]byte, string, error) {
		return nil, fmt.Sprintf("annotation %s: ", runtimev1.InjectCAFromSecretAnnotation) +
			fmt.Sprintf(format, args...), nil
	}
	namespace, name, ok := strings.Cut(reference, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return complain("%q is not of the form <namespace>/<name>", reference)
	}
	if r.namespace != "" && namespace != r.namespace {
		return complain("Secret %s is not in namespace %s, the only one that this gateway may read (--namespace)",
			reference, r.namespace)
	}
	secret, err := r.secrets.get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return complain("Secret %s does not exist; create it, or remove the annotation", reference)
	case apierrors.IsForbidden(err):
		return complain("Secret %s: the gateway may not read it; allow its service account to get it", reference)
	case err != nil:
		return nil, "", fmt.Errorf("get Secret %s: %w", reference, err)
	}
	ca = secret.Data[caKey]
	switch {
	case len(ca) == 0:
		return complain("Secret %s has no %s; put the CA of the extension's certificate there", reference, caKey)
	case base64.StdEncoding.EncodedLen(len(ca)) > limits.CABundleBytes:
		return complain("Secret %s: %s has %d bytes, which is more than caBundle has room for",
			reference, caKey, len(ca))
	case !x509.NewCertPool().AppendCertsFromPEM(ca):
		return complain("Secret %s: %s has no certificate in PEM", reference, caKey)
	}
	return ca, "", nil
}
