// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"net/http"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// One bad handler under Fail fails the aggregate and is named; under Ignore the message names it.
func TestFaultsInAnAggregate(t *testing.T) {
	process.Program(t, gatewayVariable)
	for name, ignore := range map[string]bool{"Fail": false, "Ignore": true} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			s := startStub(t, a)
			s.serve("BeforeClusterCreate", "a-good", handlerOptions{},
				say(`{"status":"Success","message":"one","retryAfterSeconds":20}`))
			s.serve("BeforeClusterCreate", "b-bad", handlerOptions{ignore: ignore},
				say(`{"status":"Success","retryAfterSeconds":5,`))
			s.serve("BeforeClusterCreate", "c-good", handlerOptions{},
				say(`{"status":"Success","message":"two","retryAfterSeconds":0}`))
			g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
			g.awaitHandler(t, "ready--s")
			got := g.post(t, path("BeforeClusterCreate", "beforeclustercreate"), samples.S())
			if !ignore {
				if message := checkFailure(t, "BeforeClusterCreate", got, http.StatusBadGateway); !strings.Contains(message, "b-bad.s") {
					t.Errorf("message %q does not name b-bad.s", message)
				}
				return
			}
			out := asCaller(t, "BeforeClusterCreate", got.body).(*runtimehooksv1.BeforeClusterCreateResponse)
			if got.code != http.StatusOK || out.Message != `one, ignored: handler "b-bad.s": BadResponse, two` || out.RetryAfterSeconds != 20 {
				t.Errorf("status %d: %s", got.code, got.body)
			}
		})
	}
}
