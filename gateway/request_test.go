// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/seeing/observe"
)

func TestRequestInJSON(t *testing.T) {
	const head = `{"kind":"BeforeClusterCreateRequest",`
	const cluster = `"cluster":{"a":1}}`
	tests := map[string]struct {
		reason   string
		body     string
		complete bool
		want     string // the error
	}{
		"Complete":     {"it can be sent on as it is", head + `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",` + cluster, true, ""},
		"NoAPIVersion": {"extensions want it", head + cluster, false, ""},
		"Neither":      {"extensions want both", "{" + cluster, false, ""},
		"Empty":        {"an empty body is not an empty message", "", false, "body is empty, want a JSON object"},
		"NotJSON":      {"", "x", false, "invalid JSON at byte 0: unexpected 'x', want a value"},
	}
	for name, tc := range tests {
		for _, as := range []reading{readWhole, passThrough, passThroughToGRPC} {
			t.Run(name, func(t *testing.T) {
				in := call{Call: observe.Call{Hook: hookOf(t, "BeforeClusterCreate")}, isJSON: true, body: []byte(tc.body)}
				m := &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "v.acme"}
				r, err := in.request(mandated, m, func(handler string) reading {
					if handler != "v.acme" {
						t.Errorf("the handler is %q", handler)
					}
					return as
				})
				if tc.want != "" {
					if hook.KindOf(err) != hook.InvalidRequest || err.Error() != tc.want {
						t.Errorf("%s: got error %v, want %s", tc.reason, err, tc.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if (r.Body != nil) != tc.complete || r.Message != proto.Message(m) || r.Handler != "v.acme" {
					t.Errorf("%s: got %+v", tc.reason, r)
				}
				in.body[len(in.body)-3] = '2'
				if string(m.GetCluster().GetRaw()) != `{"a":2}` {
					t.Errorf("the body was copied: got %s", m.GetCluster().GetRaw())
				}
			})
		}
	}
}

// What a Guard refuses is of its own kind, and not a mistake of the caller.
func TestRequestInJSONBeyondAGuard(t *testing.T) {
	long := `{"settings":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`
	full := hook.Errorf(hook.Overloaded, "the memory is used up")
	for name, tc := range map[string]struct {
		body string
		err  error
		want hook.Kind
	}{
		"Memory":   {long, full, hook.Overloaded},
		"Deadline": {long, context.DeadlineExceeded, hook.Timeout},
		"TooMany":  {emptyItems(200_000), nil, hook.TooLarge},
	} {
		in := call{Call: observe.Call{Hook: hookOf(t, "GeneratePatches")}, isJSON: true, body: []byte(tc.body)}
		in.guard = codec.Guard{Reserve: func(int64) error { return tc.err }}
		for _, as := range []reading{readWhole, passThrough, passThroughToGRPC} {
			_, err := in.request(mandated, &hooksv1alpha1.GeneratePatchesRequest{}, func(string) reading { return as })
			if hook.KindOf(err) != tc.want || tc.want == hook.Overloaded && !errors.Is(err, full) {
				t.Errorf("%s: got %v, want an error of kind %s", name, err, tc.want)
			}
		}
	}
}
