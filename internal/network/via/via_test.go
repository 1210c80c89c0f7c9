// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package via

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// through returns a way through n other gateways.
func through(n int) Way {
	var w Way
	for range n {
		w = w.Next(NewGateway(), "h.x")
	}
	return w
}

func TestCheck(t *testing.T) {
	const own = "own"
	for name, tc := range map[string]struct {
		reason string
		way    Way
		kind   hook.Kind // Internal for no error
		want   string
	}{
		"None":   {"a caller that is no gateway", "", hook.Internal, ""},
		"Others": {"gateways may be chained", "a/h.x, b/i.y", hook.Internal, ""},
		"AtLimit": {
			"as many gateways as the limit says", through(limits.GatewayHops), hook.Internal, "",
		},
		"Beyond": {
			"one gateway more, whatever their ids", through(limits.GatewayHops + 1), hook.Loop,
			"the call has passed more than 8 gateways, by way of " +
				`"h.x", "h.x", "h.x", "h.x", "h.x", "h.x", "h.x", "h.x" and 1 more: ` +
				"call the extension from a gateway nearer to it",
		},
		"Self": {
			"the gateway is registered with itself", Way("").Next(own, "h.loop"), hook.Loop,
			`the call has come back to this gateway by way of "h.loop": remove the ExtensionConfig that leads back`,
		},
		"Cycle": {
			"what came before the loop is not of it", Way("a/h.x").Next(own, "i.y").Next("b", "j.z"), hook.Loop,
			`the call has come back to this gateway by way of "i.y", "j.z": remove the ExtensionConfig that leads back`,
		},
		"Discovery": {
			"the gateway discovers itself", Way("").Next(own, ""), hook.Loop,
			"the request has come back to the gateway that sent it: the ExtensionConfig must have the address of the extension itself",
		},
		"NoEntry":       {"an entry without a handler's slash", "own", hook.InvalidRequest, ""},
		"EmptyEntry":    {"an entry that is empty", "a/h.x,,b/i.y", hook.InvalidRequest, ""},
		"NoID":          {"an entry without an id", "/h.x", hook.InvalidRequest, ""},
		"Control":       {"a handler that would write to a terminal", "a/h\x1b.x", hook.InvalidRequest, ""},
		"IDAtLimit":     {"the longest id", Way(strings.Repeat("a", maxID) + "/h.x"), hook.Internal, ""},
		"IDBeyond":      {"one character more", Way(strings.Repeat("a", maxID+1) + "/h.x"), hook.InvalidRequest, ""},
		"HandlerLimit":  {"the longest handler", Way("a/" + strings.Repeat("h", maxHandler)), hook.Internal, ""},
		"HandlerBeyond": {"one character more", Way("a/" + strings.Repeat("h", maxHandler+1)), hook.InvalidRequest, ""},
		"TooLong":       {"megabytes are not split", Way(strings.Repeat("a/h.x, ", 1<<20)), hook.InvalidRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.way.Check(own)
			if (err != nil) != (tc.kind != hook.Internal) || err != nil && hook.KindOf(err) != tc.kind {
				t.Fatalf("%s: got %v, want kind %s", tc.reason, err, tc.kind)
			}
			if tc.want != "" && err.Error() != tc.want {
				t.Errorf("%s: got  %s\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	if got := Of([]string{"a/h.x", "b/i.y, own/j.z"}).Check("own"); hook.KindOf(got) != hook.Loop {
		t.Errorf("several headers: got %v, want a loop", got)
	}
	if Of(nil) != "" {
		t.Error("a request without the header has a way")
	}
}

func TestGateways(t *testing.T) {
	if first, second := NewGateway(), NewGateway(); first == second {
		t.Error("two gateways have one id")
	}
	if first, second := GatewayOf("ca", "ns", "lease"), GatewayOf("ca", "ns", "lease"); first != second {
		t.Error("replicas have different ids")
	}
	if GatewayOf("ca", "ns", "lease") == GatewayOf("ca", "nsl", "ease") {
		t.Error("deployments share an id")
	}
	if id := GatewayOf("x"); !valid(id, maxID) || !valid(NewGateway(), maxID) {
		t.Errorf("id %q is not valid in a way", id)
	}
}
