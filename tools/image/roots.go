// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsPEM returns the certificate authorities of Mozilla's store, as the Go project publishes them in a module: its
// version in go.mod pins them. An authority that Mozilla trusts only for certificates of before some day is left out: a
// file cannot say that.
func rootsPEM() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
		_, _ = fmt.Fprintf(&b, "# %s\n", certificate.Subject)
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("certificate authority %s: %w", certificate.Subject, err)
		}
	}
	return b.Bytes(), nil
}
