// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package devcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lastingFor is how long a kept certificate must still be valid, so that it does not expire while it is in use.
const lastingFor = 24 * time.Hour

// Keep returns when the certificate in dir ends, after it has made one as New and WriteDir do if there is none, or if
// the one that is there ends within a day. It makes dir if necessary, for its user alone. It never replaces a
// certificate that is not for development, which is an error.
func Keep(dir string, notAfter time.Time) (ends time.Time, made bool, err error) {
	leaf, err := read(dir)
	if err == nil && time.Until(leaf.NotAfter) > lastingFor {
		return leaf.NotAfter, false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return time.Time{}, false, fmt.Errorf("write development certificates: %w", err)
	}
	pair, err := New(notAfter)
	if err != nil {
		return time.Time{}, false, err
	}
	return notAfter, true, pair.WriteDir(dir)
}

// read returns the certificate in dir. The error is fs.ErrNotExist if dir has neither certificate nor key.
func read(dir string) (*x509.Certificate, error) {
	missing := 0
	for _, name := range []string{CertFile, KeyFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			missing++
		} else if err != nil {
			return nil, fmt.Errorf("read development certificates: %w", err)
		}
	}
	if missing == 2 {
		return nil, fs.ErrNotExist
	}
	unusable := func(why string) error {
		return fmt.Errorf("%s has a %s or %s that was not made for development, so the files were not changed: %s; name "+
			"another directory, or remove the files", dir, CertFile, KeyFile, why)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, unusable(err.Error())
	}
	if !slices.Contains(pair.Leaf.Issuer.Organization, organization) {
		return nil, unusable("another CA has signed the certificate")
	}
	ca, err := os.ReadFile(filepath.Join(dir, CAFile))
	if err != nil {
		return nil, unusable(err.Error())
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: "127.0.0.1", Roots: roots, CurrentTime: pair.Leaf.NotBefore})
	if err != nil {
		return nil, unusable(err.Error())
	}
	return pair.Leaf, nil
}
