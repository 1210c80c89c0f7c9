// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an OCI image layout with the index as its one image, as a tar. The file appears when it is
// complete.
//
// The image's name is there in the two ways that tools read: org.opencontainers.image.ref.name is the tag, and
// containerd has an annotation of its own for the whole name.
func writeArchive(path, reference, tag string, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = l.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          reference,
	}))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // not there any more after success
	err = errors.Join(writeTar(file, os.DirFS(dir)), file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// writeTar writes the files in the order of their names. fs.WalkDir sorts.
func writeTar(out io.Writer, files fs.FS) error {
	w := tar.NewWriter(out)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case entry.IsDir():
			return w.WriteHeader(&tar.Header{
				Name: path + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR,
			})
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		h := &tar.Header{
			Name: path, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644, ModTime: epoch,
			Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		return nil
	})
	return errors.Join(err, w.Close())
}
