// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

const certificateLifetime = 30 * 24 * time.Hour

// files holds the paths of the files that the quickstart writes.
type files struct {
	certDir   string
	ca        string
	configDir string
	pair      *devcert.Pair
}

// writeCertificates makes new certificates.
func writeCertificates(dir string) (files, error) {
	f := files{certDir: filepath.Join(dir, "certs"), configDir: filepath.Join(dir, "extension-configs")}
	f.ca = filepath.Join(f.certDir, devcert.CAFile)
	var err error
	if f.pair, err = devcert.New(time.Now().Add(certificateLifetime)); err != nil {
		return f, err
	}
	if err := f.pair.WriteDir(f.certDir); err != nil {
		return f, err
	}
	if err := os.MkdirAll(f.configDir, 0o750); err != nil {
		return f, fmt.Errorf("write ExtensionConfig: %w", err)
	}
	return f, nil
}

// writeExtensionConfig registers the extension at address, and returns the manifest's file.
func (f files) writeExtensionConfig(address string) (string, error) {
	manifest := fmt.Sprintf(`apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata:
  name: rest-extension
spec:
  clientConfig:
    url: https://%s
    caBundle: %s
  settings:
    contact: the platform team
`, address, base64.StdEncoding.EncodeToString(f.pair.CAPEM))
	file := filepath.Join(f.configDir, "rest-extension.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		return "", fmt.Errorf("write ExtensionConfig: %w", err)
	}
	return file, nil
}

// writeJSON writes a request in YAML as JSON, for curl.
func writeJSON(request, file string) error {
	data, err := os.ReadFile(request)
	if err != nil {
		return fmt.Errorf("read example request: %w", err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		return fmt.Errorf("read example request %s: %w", request, err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, data, "", "  "); err != nil {
		return fmt.Errorf("read example request %s: %w", request, err)
	}
	indented.WriteByte('\n')
	if err := os.WriteFile(file, indented.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	return nil
}
