// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
)

// The list of handlers is sorted, and the same from call to call and from replica to replica.
func TestDiscoveryIsSortedAndTheSameOnEveryReplica(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "north", "0")
	manifests := map[string]string{"hub.yaml": registration{name: "hub", url: e.url}.manifest(a),
		"b.yaml": registration{name: "branch", url: e.url}.manifest(a)}
	var first []byte
	for replica := range 2 {
		g := startGateway(t, a, manifests)
		g.awaitHandler(t, "patches--hub")
		g.awaitHandler(t, "patches--branch")
		for range 10 {
			got, handlers := g.discovery(t)
			if first == nil {
				first = got.body
			}
			if !bytes.Equal(got.body, first) {
				t.Fatalf("replica %d: discovery differs:\n%s\n%s", replica, first, got.body)
			}
			if !slices.IsSortedFunc(handlers, func(x, y runtimehooksv1.ExtensionHandler) int { return strings.Compare(x.Name, y.Name) }) {
				t.Fatalf("discovery is not sorted by name: %s", got.body)
			}
		}
	}
}
