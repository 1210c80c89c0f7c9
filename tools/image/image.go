// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// binaryPath is the entrypoint.
	binaryPath = "/hookgate"
	// rootsPath is the first place where Go's crypto/x509 looks for certificate authorities on Linux.
	rootsPath = "/etc/ssl/certs/ca-certificates.crt"
	// user and group are numbers, so that Kubernetes can verify that they are not root. 65532 is what distroless images
	// use.
	user = "65532:65532"
	// temporary names the one directory that can be written in a container with a read-only root file system.
	temporary = "TMPDIR=/dev/shm"
)

// epoch is the value of every time in the image, so that the bytes do not depend on the time of the build.
var epoch = time.Unix(0, 0).UTC()

// labels returns the labels of the image, which its manifests and index have as annotations too.
func (s *spec) labels() map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":         "hookgate",
		"org.opencontainers.image.description":   "A gateway between Cluster API and its Runtime Extensions",
		"org.opencontainers.image.url":           "https://github.com/hookgate/hookgate",
		"org.opencontainers.image.source":        "https://github.com/hookgate/hookgate",
		"org.opencontainers.image.documentation": "https://github.com/hookgate/hookgate/blob/main/docs/deploy.md",
		"org.opencontainers.image.vendor":        "The Hookgate Authors",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       s.version,
	}
	if s.revision != "" {
		l["org.opencontainers.image.revision"] = s.revision
	}
	return l
}

// newIndex returns the image of all platforms.
func newIndex(s spec) (v1.ImageIndex, error) {
	roots, err := rootsPEM()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range s.binaries {
		image, err := newImage(b, roots, s.labels())
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", b.platform(), err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex), nil
}

// newImage returns the image of one platform: one layer.
func newImage(b binary, roots []byte, labels map[string]string) (v1.Image, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	files, err := newLayerTar(program, roots)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "tools/image"},
	})
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: epoch}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{binaryPath}, WorkingDir: "/", Env: []string{temporary}, Labels: labels,
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

// newLayerTar returns the files of the image as a tar. All of them belong to root, so that the process cannot write
// them.
func newLayerTar(program, roots []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		path string
		mode int64
		data []byte // nil for a directory
	}{
		{path: "etc/", mode: 0o755},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
		{path: rootsPath[1:], mode: 0o644, data: roots},
		{path: binaryPath[1:], mode: 0o755, data: program},
	} {
		h := &tar.Header{Name: f.path, Mode: f.mode, ModTime: epoch, Typeflag: tar.TypeDir, Format: tar.FormatUSTAR}
		if f.data != nil {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.data))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("file %s: %w", f.path, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("file %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
