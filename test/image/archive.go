// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// archiveVariable is the environment variable with the path of the archive.
const archiveVariable = "HOOKGATE_IMAGE"

// The media types of the image specification.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor points at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// manifestList is an index, or the index.json of a layout.
type manifestList struct {
	MediaType   string            `json:"mediaType"`
	Manifests   []descriptor      `json:"manifests"`
	Annotations map[string]string `json:"annotations"`
}

// platformImage is the image of one platform.
type platformImage struct {
	platform    string
	annotations map[string]string
	config      configFile
	layer       []file
}

// configFile is the configuration of an image. Other members are not allowed.
type configFile struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       struct {
		User       string
		Entrypoint []string
		WorkingDir string
		Env        []string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	} `json:"history"`
}

// file is an entry of a layer.
type file struct {
	*tar.Header
	data []byte
}

// image holds the contents of an archive.
type image struct {
	path         string
	tag, name    string
	blobs        map[string][]byte // by digest
	unreferenced map[string]bool   // digests of blobs that nothing points at
	index        manifestList
	images       []platformImage
}

// open reads the archive, or skips the test without one.
func open(t *testing.T) *image {
	t.Helper()
	path := process.Program(t, archiveVariable)
	i := &image{path: path, blobs: map[string][]byte{}, unreferenced: map[string]bool{}}
	var layout struct {
		ImageLayoutVersion string `json:"imageLayoutVersion"`
	}
	var top manifestList
	for _, f := range readTar(t, bytes.NewReader(readFile(t, path))) {
		digest, isBlob := strings.CutPrefix(f.Name, "blobs/sha256/")
		switch {
		case f.Typeflag == tar.TypeDir:
		case f.Name == "oci-layout":
			decode(t, f.Name, f.data, &layout)
		case f.Name == "index.json":
			decode(t, f.Name, f.data, &top)
		case isBlob:
			i.blobs["sha256:"+digest], i.unreferenced["sha256:"+digest] = f.data, true
		default:
			t.Errorf("the archive has %s, which is not part of a layout", f.Name)
		}
	}
	if layout.ImageLayoutVersion != "1.0.0" {
		t.Errorf("oci-layout says version %q", layout.ImageLayoutVersion)
	}
	if len(top.Manifests) != 1 {
		t.Fatalf("index.json lists %d images, want 1", len(top.Manifests))
	}
	i.tag = top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
	i.name = top.Manifests[0].Annotations["io.containerd.image.name"]
	decode(t, "the index", i.blob(t, top.Manifests[0], indexType), &i.index)
	for _, d := range i.index.Manifests {
		i.images = append(i.images, i.readImage(t, d))
	}
	return i
}

func (i *image) readImage(t *testing.T, d descriptor) platformImage {
	t.Helper()
	p := platformImage{platform: d.Platform.OS + "/" + d.Platform.Architecture}
	var manifest struct {
		Config      descriptor        `json:"config"`
		Layers      []descriptor      `json:"layers"`
		Annotations map[string]string `json:"annotations"`
	}
	decode(t, "manifest of "+p.platform, i.blob(t, d, manifestType), &manifest)
	p.annotations = manifest.Annotations
	strict := json.NewDecoder(bytes.NewReader(i.blob(t, manifest.Config, configType)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&p.config); err != nil {
		t.Fatalf("configuration of %s: %v", p.platform, err)
	}
	if len(manifest.Layers) != 1 || len(p.config.RootFS.DiffIDs) != 1 {
		t.Fatalf("%s has %d layers, want 1", p.platform, len(manifest.Layers))
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(i.blob(t, manifest.Layers[0], layerType)))
	if err != nil {
		t.Fatalf("layer of %s: %v", p.platform, err)
	}
	layer, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatalf("layer of %s: %v", p.platform, err)
	}
	if got := digest(layer); got != p.config.RootFS.DiffIDs[0] {
		t.Errorf("layer of %s: digest %s, the configuration says %s", p.platform, got, p.config.RootFS.DiffIDs[0])
	}
	p.layer = readTar(t, bytes.NewReader(layer))
	return p
}

// blob returns the blob of a descriptor after checking its size and digest.
func (i *image) blob(t *testing.T, d descriptor, mediaType string) []byte {
	t.Helper()
	data, ok := i.blobs[d.Digest]
	if !ok {
		t.Fatalf("the archive has no blob %s", d.Digest)
	}
	if d.MediaType != mediaType || d.Size != int64(len(data)) || d.Digest != digest(data) {
		t.Errorf("descriptor %+v points at a blob of %d bytes with digest %s, want type %s", d, len(data), digest(data),
			mediaType)
	}
	delete(i.unreferenced, d.Digest)
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func readTar(t *testing.T, r io.Reader) []file {
	t.Helper()
	var files []file
	for reader := tar.NewReader(r); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatalf("read tar: %v", err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatalf("read %s of tar: %v", h.Name, err)
		}
		files = append(files, file{Header: h, data: data})
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t *testing.T, what string, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("decode %s: %v", what, err)
	}
}
