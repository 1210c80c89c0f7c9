// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// platforms maps the image's required platforms to the machine types of their binaries.
var platforms = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// TestImage reads the archive once, because that is slow with the race detector.
func TestImage(t *testing.T) {
	i := open(t)
	for name, test := range map[string]func(*testing.T, *image){
		"Layout": testLayout, "Configuration": testConfiguration, "Contents": testContents,
		"Version": testVersion, "Serve": testServe, "Sidecar": testSidecar, "Reproducible": testReproducible,
	} {
		t.Run(name, func(t *testing.T) { test(t, i) })
	}
}

func testLayout(t *testing.T, i *image) {
	got := map[string]bool{}
	for _, p := range i.images {
		got[p.platform] = true
	}
	want := map[string]bool{}
	for p := range platforms {
		want[p] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if len(i.unreferenced) > 0 {
		t.Errorf("nothing points at the blobs %v", i.unreferenced)
	}
	if i.tag == "" || !strings.HasSuffix(i.name, "/hookgate:"+i.tag) || strings.Count(i.name, "/") < 2 {
		t.Errorf("the archive calls the image %q with tag %q, want a canonical name with that tag", i.name, i.tag)
	}
}

func testConfiguration(t *testing.T, i *image) {
	for _, p := range i.images {
		t.Run(p.platform, func(t *testing.T) {
			c := p.config
			if c.OS+"/"+c.Architecture != p.platform {
				t.Errorf("the configuration is for %s/%s", c.OS, c.Architecture)
			}
			if c.Config.User != "65532:65532" {
				t.Errorf("user %q, want numbers that are not root's: Kubernetes checks runAsNonRoot by them",
					c.Config.User)
			}
			if diff := cmp.Diff([]string{"/hookgate"}, c.Config.Entrypoint); diff != "" {
				t.Errorf("entrypoint (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"TMPDIR=/dev/shm"}, c.Config.Env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if c.Created.Unix() != 0 || len(c.History) != 1 || c.History[0].Created.Unix() != 0 {
				t.Errorf("created %s, history %+v: want no time but 1970", c.Created, c.History)
			}
			labels := c.Config.Labels
			for _, name := range []string{"title", "description", "url", "source", "documentation", "vendor"} {
				if labels["org.opencontainers.image."+name] == "" {
					t.Errorf("there is no label org.opencontainers.image.%s", name)
				}
			}
			if labels["org.opencontainers.image.version"] != i.tag ||
				labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
				t.Errorf("labels %v: want version %s and the licence", labels, i.tag)
			}
			if created, ok := labels["org.opencontainers.image.created"]; ok {
				t.Errorf("label of the time of the build: %s", created)
			}
			for _, annotations := range []map[string]string{p.annotations, i.index.Annotations} {
				if diff := cmp.Diff(labels, annotations); diff != "" {
					t.Errorf("annotations differ from the labels (-labels +annotations):\n%s", diff)
				}
			}
		})
	}
}

func testContents(t *testing.T, i *image) {
	want := []string{
		"drwxr-xr-x etc/", "drwxr-xr-x etc/ssl/", "drwxr-xr-x etc/ssl/certs/", "-rw-r--r-- etc/ssl/certs/ca-certificates.crt", "-rwxr-xr-x hookgate",
	}
	for _, p := range i.images {
		t.Run(p.platform, func(t *testing.T) {
			var got []string
			for _, f := range p.layer {
				got = append(got, f.FileInfo().Mode().String()+" "+f.Name)
				if f.Uid != 0 || f.Gid != 0 || f.Uname != "" || f.Gname != "" || f.ModTime.Unix() != 0 ||
					len(f.PAXRecords) != 0 {
					t.Errorf("%s: %+v: want it to be root's, of 1970, and no more said of it", f.Name, f.Header)
				}
				if f.Typeflag == tar.TypeReg && len(f.data) == 0 {
					t.Errorf("%s is empty", f.Name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("the image has other files (-want +got):\n%s", diff)
			}
			checkRoots(t, p.layer[3].data)
			checkBinary(t, p.layer[4].data, platforms[p.platform])
		})
	}
}

// checkBinary checks that the binary is for the machine, and that it needs no other file to run.
func checkBinary(t *testing.T, data []byte, machine elf.Machine) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("the binary: %v", err)
	}
	if f.Machine != machine {
		t.Errorf("the binary is for %s, want %s", f.Machine, machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a segment %s: it is not static", p.Type)
		}
	}
}

// checkRoots checks that every block is a certificate authority. Mozilla has had more than a hundred for years.
func checkRoots(t *testing.T, data []byte) {
	t.Helper()
	authorities := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != "CERTIFICATE" || !c.IsCA {
			t.Errorf("certificate authority %d: %s, %v", authorities, block.Type, err)
		}
		authorities++
	}
	if authorities < 100 {
		t.Errorf("%d certificate authorities, want Mozilla's list", authorities)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		t.Error("Go reads no certificate authority from the file")
	}
}
