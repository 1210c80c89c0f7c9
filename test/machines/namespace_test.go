// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/test/process"
)

// TestNamespaceFlags runs the program with --namespace, which bounds the Machines, too, unless --machines-namespace says
// otherwise. The Lease tells which Machines the controllers are for.
func TestNamespaceFlags(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	program, kubeconfig := process.Program(t, "HOOKGATE_BIN"), operator(t)
	for name, tc := range map[string]struct {
		flags []string
		lease string
	}{
		"namespace":          {[]string{"--namespace", w.namespace}, leaseName(w.namespace, "")},
		"all":                {[]string{"--namespace", w.namespace, "--machines-namespace", "*"}, leaseName("", w.namespace)},
		"machines-namespace": {[]string{"--namespace", "other", "--machines-namespace", w.namespace}, leaseName(w.namespace, w.namespace)},
	} {
		filter := []string{"--watch-filter", w.namespace}
		if name == "namespace" {
			filter = nil
		}
		p := process.Run(t, name, exec.CommandContext(t.Context(), program, append(append([]string{
			"machines", "--kubeconfig", kubeconfig, "--diagnostics-address", "127.0.0.1:0",
		}, tc.flags...), filter...)...))
		lease := &coordinationv1.Lease{}
		process.Eventually(t, name+" has its Lease", func() bool {
			return w.client.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: tc.lease}, lease) == nil
		})
		p.Stop()
	}
}

// leaseName returns the name of the Lease of controllers of Machines. Another one would let those of two releases work
// at the same time.
func leaseName(namespace, watchFilter string) string {
	return fmt.Sprintf("hookgate-machines-%.4x", sha256.Sum256([]byte(namespace+"/"+watchFilter)))
}
