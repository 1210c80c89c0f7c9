// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// Messages are merged in the order of the handlers' names, whichever handler answers first.
func TestMergedMessagesAreInTheOrderOfNames(t *testing.T) {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	var want []string
	g, _ := startStubs(t, func(s *stub) {
		for _, name := range []string{"m", "c", "z", "a", "k", "b", "y"} {
			want = append(want, "from "+name)
			s.serve("BeforeClusterCreate", name, handlerOptions{}, func(w http.ResponseWriter, r *http.Request) {
				<-turn // one after the other, in the order in which they happen to arrive
				success("from "+name)(w, r)
				turn <- struct{}{}
			})
		}
	})
	slices.Sort(want)
	for range 30 {
		got := g.post(t, path("BeforeClusterCreate", ""), samples.S())
		if out := asCaller(t, "BeforeClusterCreate", got.body); out.GetMessage() != strings.Join(want, ", ") {
			t.Fatalf("message %q, want %q", out.GetMessage(), strings.Join(want, ", "))
		}
	}
	t.Run("failures", func(t *testing.T) {
		g, _ := startStubs(t, func(s *stub) {
			for _, name := range []string{"m", "c", "z", "a"} {
				s.serve("BeforeClusterCreate", name, handlerOptions{},
					say(`{"status":"Failure","message":"no `+name+`","retryAfterSeconds":0}`))
			}
		})
		first := g.post(t, path("BeforeClusterCreate", ""), samples.S())
		for range 30 {
			if again := g.post(t, path("BeforeClusterCreate", ""), samples.S()); !bytes.Equal(first.body, again.body) {
				t.Fatalf("the text of several failures changes:\n%s\n%s", first.body, again.body)
			}
		}
	})
}

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
