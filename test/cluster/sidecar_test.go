// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
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
