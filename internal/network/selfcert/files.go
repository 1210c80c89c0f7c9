// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/internal/base/files"
)

// Files are the files with a certificate and its key.
type Files struct {
	Dir, Cert, Key string
}

// exist reports whether there is a certificate already.
func (f Files) exist() bool { return f.has(f.Cert) }

// hasCA reports whether there are authorities already.
func (f Files) hasCA() bool { return f.has(caKey) }

func (f Files) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.Dir, name))
	return err == nil
}

// write writes the certificate of a Secret.
func (f Files) write(p *pair) error {
	if err := f.replace(f.Key, p.data(corev1.TLSPrivateKeyKey)); err != nil {
		return err
	}
	return f.replace(f.Cert, p.data(corev1.TLSCertKey))
}

// writeCA writes the authorities of a Secret.
func (f Files) writeCA(p *pair) error { return f.replace(caKey, p.data(caKey)) }

// replace writes a file unless it is as wanted.
func (f Files) replace(name string, data []byte) error {
	path := filepath.Join(f.Dir, name)
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, data) {
		return nil
	}
	err := os.MkdirAll(f.Dir, 0o700)
	if err == nil {
		err = files.Replace(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w; mount a writable volume, such as an emptyDir, for the "+
			"gateway's certificates", path, err)
	}
	return nil
}
