// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// container is the image of this machine's platform, unpacked.
type container struct {
	root string
	tag  string
}

func unpack(t *testing.T, i *image) container {
	t.Helper()
	c := container{root: t.TempDir(), tag: i.tag}
	for _, p := range i.images {
		if p.platform != runtime.GOOS+"/"+runtime.GOARCH {
			continue
		}
		for _, f := range p.layer {
			path := filepath.Join(c.root, f.Name)
			if f.Typeflag == tar.TypeDir {
				mkdir(t, path)
			} else {
				write(t, path, f.data, f.FileInfo().Mode())
			}
		}
		return c
	}
	t.Skipf("the image is not for %s/%s, which this machine is", runtime.GOOS, runtime.GOARCH)
	return c
}

// command returns the entrypoint with arguments: as the image's user with the image as its root, if permissions allow
// it.
func (c container) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.root, "hookgate"), args...)
	cmd.Env = []string{}
	cmd.WaitDelay = 5 * time.Second
	if c.confined() {
		cmd.Path, cmd.Dir = "/hookgate", "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	return cmd
}

func (c container) confined() bool { return os.Geteuid() == 0 }

// inside returns the path by which the process sees a file of the image.
func (c container) inside(path string) string {
	if c.confined() {
		return path
	}
	return filepath.Join(c.root, path)
}

func testVersion(t *testing.T, i *image) {
	c := unpack(t, i)
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	out, err := c.command(ctx, "version", "-o", "json").Output()
	if err != nil {
		t.Fatalf("hookgate version: %v", err)
	}
	var got struct{ Version, Platform string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("hookgate version: %v in %s", err, out)
	}
	if got.Version != c.tag || got.Platform != "linux/"+runtime.GOARCH {
		t.Errorf("got %+v, want version %s for linux/%s", got, c.tag, runtime.GOARCH)
	}
}

// testServe runs the gateway on mounts as Kubernetes makes them: links into a folder whose name changes.
func testServe(t *testing.T, i *image) {
	c := unpack(t, i)
	pair := certificates.New(t)
	c.mount(t, "/etc/hookgate/certs", map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM})
	c.mount(t, "/etc/hookgate/extension-configs", map[string][]byte{"namespaces.yaml": []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")})

	cmd := c.command(t.Context(), "serve", "--cert-dir", c.inside("/etc/hookgate/certs"),
		"--extension-configs", c.inside("/etc/hookgate/extension-configs"),
		"--http-address", "127.0.0.1:0", "--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0", "--health-addr", "127.0.0.1:0")
	g := process.RunGateway(t, cmd)
	g.WaitReady(t)
	g.EndWell(t)
}

// mount creates a folder in the form of the kubelet's ConfigMap and Secret volumes.
func (c container) mount(t *testing.T, path string, files map[string][]byte) {
	t.Helper()
	dir := filepath.Join(c.root, path)
	mkdir(t, filepath.Join(dir, "..data_1"))
	link(t, "..data_1", filepath.Join(dir, "..data"))
	for name, data := range files {
		write(t, filepath.Join(dir, "..data_1", name), data, 0o644)
		link(t, filepath.Join("..data", name), filepath.Join(dir, name))
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
