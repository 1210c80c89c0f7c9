// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/machines"
)

// The annotations by which Cluster API waits for the gateway. When nothing else is left, they are taken off by hand.
func Example() {
	m := &clusterv1.Machine{}
	m.Annotations = map[string]string{machines.DrainAnnotation: "", machines.TerminateAnnotation: ""}
	for _, annotation := range []string{machines.DrainAnnotation, machines.TerminateAnnotation} {
		_, waits := m.Annotations[annotation]
		fmt.Println(annotation, waits)
	}
	// Output:
	// pre-drain.delete.hook.machine.cluster.x-k8s.io/hookgate true
	// pre-terminate.delete.hook.machine.cluster.x-k8s.io/hookgate true
}
