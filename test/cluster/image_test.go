// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	// imageVariable names the archive of the product's image.
	imageVariable = "HOOKGATE_IMAGE"
	// podsVariable names the directory with the programs that Pods of the tests run, beside CoreDNS.
	podsVariable = "HOOKGATE_POD_PROGRAMS"
)

// writeImage writes the one image of the tests, as `docker save` does: localhost/test:1, with each program in its root
// folder. Without a command, it is the container that holds the namespaces of a Pod.
func writeImage(archive string) (err error) {
	layer, err := os.CreateTemp(filepath.Dir(archive), "layer-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(layer.Name()) }()
	sum := sha256.New()
	t := tar.NewWriter(io.MultiWriter(layer, sum))
	programs, err := filepath.Glob(filepath.Join(os.Getenv(podsVariable), "*"))
	if err != nil || len(programs) == 0 {
		return fmt.Errorf("%s=%s has no programs: %w", podsVariable, os.Getenv(podsVariable), err)
	}
	if dir := os.Getenv(allVariable); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "pods", "*"))
		if err != nil {
			return err
		}
		programs = append(programs, more...)
	}
	for _, program := range append(programs, filepath.Join(os.Getenv(binVariable), "coredns")) {
		if err := addFile(t, program, filepath.Base(program)); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := layer.Close(); err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	t = tar.NewWriter(out)
	config := map[string]any{
		"os": "linux", "architecture": "amd64",
		"config": map[string]any{"User": "65532:65532", "Entrypoint": []string{"/pod", "pause"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum.Sum(nil))}},
	}
	manifest := []map[string]any{{"Config": "config.json", "RepoTags": []string{"localhost/test:1"}, "Layers": []string{"layer.tar"}}}
	for name, value := range map[string]any{"config.json": config, "manifest.json": manifest} {
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := addFile(t, layer.Name(), "layer.tar"); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return out.Close()
}

func addFile(t *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
