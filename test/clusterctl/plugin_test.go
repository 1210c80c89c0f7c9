// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// krewName and krewVersion are what krew accepts.
var (
	krewName    = regexp.MustCompile(`^[\w-]+$`)
	krewVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+`)
)

// krewPlugin has the members of a manifest of krew. All others are refused, as krew does.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// Each program of a release can be installed as a plug-in of kubectl: the manifest names an archive of the release with
// its checksum, and the archive has the program, executable, under the name by which kubectl knows it.
func TestPluginInstallsEachProgram(t *testing.T) {
	programs := t.TempDir()
	for _, name := range platforms(t) {
		for _, program := range []string{"hookgate-", "hookgate-render-"} {
			if err := os.WriteFile(filepath.Join(programs, program+name), []byte("the program for "+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, stderr, err := release(t, "v0.1.0", "-binaries", programs)
	if err != nil {
		t.Fatalf("release: %v\n%s", err, stderr)
	}
	var p krewPlugin
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(dir, "plugin.yaml")), &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "hookgate" ||
		!krewName.MatchString(p.Metadata.Name) || p.Spec.Version != "v0.1.0" || !krewVersion.MatchString(p.Spec.Version) ||
		p.Spec.Homepage == "" || p.Spec.ShortDescription == "" || len(p.Spec.ShortDescription) > 50 || p.Spec.Description == "" {
		t.Errorf("the manifest is of %+v", p)
	}
	var got []string
	for _, platform := range p.Spec.Platforms {
		name := platform.Selector.MatchLabels["os"] + "-" + platform.Selector.MatchLabels["arch"]
		got = append(got, name)
		file, ok := strings.CutPrefix(platform.URI, "https://github.com/hookgate/hookgate/releases/download/v0.1.0/")
		if !ok {
			t.Fatalf("%s is downloaded from %s", name, platform.URI)
		}
		archive := read(t, filepath.Join(dir, file))
		if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); sum != platform.SHA256 {
			t.Errorf("%s: the manifest has the checksum %s, and the file %s", file, platform.SHA256, sum)
		}
		if platform.Bin != "kubectl-hookgate" {
			t.Errorf("%s: the program is %s", name, platform.Bin)
		}
		want := map[string]string{
			"kubectl-hookgate": "-rwxr-xr-x the program for " + name,
			"hookgate-render":  "-rwxr-xr-x the program for " + name,
			"LICENSE":          "-rw-r--r-- " + string(read(t, filepath.Join("..", "..", "LICENSE"))),
		}
		if diff := cmp.Diff(want, unpack(t, archive)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	want := platforms(t)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// unpack returns the mode and the content of each file in an archive.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = header.FileInfo().Mode().String() + " " + string(content)
	}
}

// Without programs, there is nothing that krew could install.
func TestReleaseWithoutProgramsHasNoPlugin(t *testing.T) {
	if _, err := os.Stat(filepath.Join(released(t, "v0.1.0"), "plugin.yaml")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
