// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sidecarCommand is how the command line of the gateway beside an extension begins.
const sidecarCommand = "/hookgate serve --cert-dir=/etc/hookgate/certs --sidecar=unix"

// TestSidecar runs an extension over a Unix socket with a gateway in its Pod, and kills either.
func TestSidecar(t *testing.T) {
	hub(t)
	extension, err := files.ReadFile("testdata/beside.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, kustomize(t, `
resources: [extension.yaml]
components: [../../deploy/components/sidecar]
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: test, path: /spec/template/spec/containers/0/args/2, value: "--sidecar=grpc://127.0.0.1:9090"}
    - {op: replace, path: /spec/template/spec/containers/0/args/2, value: "--sidecar=unix:///run/extension/extension.sock"}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: socket, mountPath: /run/extension}}
images: [{name: ghcr.io/hookgate/hookgate, newTag: `+release+`}]
`, map[string][]byte{"extension.yaml": extension}))
	rolledOut(t, "beside", "extension")
	args := []string{"-https", "https://extension.beside.svc:443", "-grpc", "", "-certs", "/certs", "-hook", "BeforeClusterUpgrade"}
	awaitCalls(t, args...)
	for _, command := range []string{"/extension", sidecarCommand} {
		end := load(t, 20, 6*time.Second, args...)
		time.Sleep(time.Second) // so that there are calls before and after it
		found := pids(t, command)
		if len(found) != 1 {
			t.Fatalf("%d processes begin with %q", len(found), command)
		}
		if err := syscall.Kill(found[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if c := end(); c.Wrong > 0 || c.Failed == c.Calls {
			t.Errorf("%s is killed: %s", command, c.log)
		}
		rolledOut(t, "beside", "extension")
		if c := load(t, 20, time.Second, args...)(); c.Failed > 0 || c.Wrong > 0 {
			t.Errorf("after %s was killed: %s", command, c.log)
		}
	}
}

// TestSidecarChart installs the same extension as a chart with the library chart of a release, calls it, and uninstalls it.
func TestSidecarChart(t *testing.T) {
	all(t)
	const library = "hookgate-sidecar-0.1.0.tgz"
	extension, err := files.ReadFile("testdata/beside.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.SplitAfter(strings.ReplaceAll(string(extension), "beside", "charted"), "---\n")
	// The chart has the Deployment and the Service, with the lines of docs/sidecar.md.
	template := strings.NewReplacer(
		"    spec:\n", "    spec:\n      {{- include \"hookgate-sidecar.pod\" . | nindent 6 }}\n",
		"      containers:\n", "      containers:\n      {{- include \"hookgate-sidecar.container\" . | nindent 6 }}\n",
		"      volumes: [{name: socket, emptyDir: {}}]\n", "      volumes:\n      {{- include \"hookgate-sidecar.volume\" . | nindent 6 }}\n"+
			"      - {name: socket, emptyDir: {}}\n",
	).Replace(strings.Join(documents[2:], ""))
	archive, err := os.ReadFile(filepath.Join(released(t, filepath.Join(root(t), "deploy", "release"), release), library))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: extension, version: 0.1.0, dependencies: [{name: hookgate-sidecar, version: 0.1.0}]}",
		"values.yaml": "hookgate-sidecar: {extension: 'unix:///run/extension/extension.sock', " +
			"volumeMounts: [{name: socket, mountPath: /run/extension}]}",
		"templates/extension.yaml": template,
		"charts/" + library:        string(archive),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	given, err := sign([]byte(strings.Join(documents[:2], "")))
	if err != nil {
		t.Fatal(err)
	}
	apply(t, given)
	t.Cleanup(func() { kubectl(t, "delete", "namespace", "charted") })
	kubectl(t, "-n", "charted", "wait", "--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt", "--timeout=60s")
	had := objects(t)
	c := &chart{dir: t.TempDir()}
	c.helm(t, "install", "extension", dir, "--namespace", "charted")
	rolledOut(t, "charted", "extension")
	awaitCalls(t, "-https", "https://extension.charted.svc:443", "-grpc", "", "-certs", "/certs", "-hook", "BeforeClusterUpgrade")
	c.helm(t, "uninstall", "extension", "--namespace", "charted")
	expectLeft(t, func(object string) bool { return had[object] })
}
