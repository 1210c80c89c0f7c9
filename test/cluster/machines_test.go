// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// annotations is the template for kubectl that prints the names of the annotations of an object.
const annotations = `go-template={{range $name, $value := .metadata.annotations}}{{$name}} {{end}}`

// TestMachines runs `hookgate machines` beside the gateway: a Machine is held as long as a rule says so, and while no
// command keeps the annotations off.
func TestMachines(t *testing.T) {
	all(t)
	deploy := filepath.Join(root(t), "deploy")
	for _, flags := range [][]string{
		{"-k", filepath.Join(deploy, "crd", "machines")}, {"-f", filepath.Join(deploy, "components", "machines", "rbac.yaml")},
		{"-f", node.file("machines.yaml")},
	} {
		kubectl(t, append([]string{"apply", "--server-side"}, flags...)...)
		t.Cleanup(func() { kubectl(t, append([]string{"delete", "--ignore-not-found"}, flags...)...) })
	}
	rolledOut(t, namespace, "hookgate-machines")
	applyFile(t, "held.yaml")
	awaitOutput(t, "pre-drain.delete.hook.machine.cluster.x-k8s.io/hookgate", "get", "machine/held", "-o", annotations)
	expectNotHeld := func() {
		process.EventuallySees(t, process.Patience, "the Machine is not held", func() (string, bool) {
			got := kubectl(t, "get", "machine/held", "-o", annotations)
			return got, !strings.Contains(got, "hookgate")
		})
	}
	p := newPlugin(t)
	p.expect(t, "machines release --hold-off", "1 Machine released")
	expectNotHeld()
	p.expect(t, "machines release --resume", "Cluster resumed")
	awaitOutput(t, "pre-drain.delete.hook.machine.cluster.x-k8s.io/hookgate", "get", "machine/held", "-o", annotations)
	kubectl(t, "delete", "hookrules.hookgate.dev/hold")
	expectNotHeld()
	kubectl(t, "delete", "-f", node.file("held.yaml"), "--ignore-not-found")
}
