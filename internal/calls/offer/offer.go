// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offer makes the gateway's own answers to Discovery: the handlers that it offers its callers.
package offer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// Offers makes the answers of one gateway. It is immutable, and safe for concurrent use.
type Offers struct {
	Catalog *catalog.Catalog
	Gateway string // the id of the gateway
}

// Discovery returns the gateway's own handlers of one group of hooks, so that one ExtensionConfig registers it with
// Cluster API or with another gateway:
//
//   - one handler for each lifecycle hook, named as the hook in lower case, which represents every handler of that
//     hook. It is always there, so that nothing changes for the caller when extensions come and go;
//   - one handler for each registered handler of every other hook, under its label or, if the policy for its extension
//     says so, under its own name;
//   - one handler for each HandlerChain of such a hook, under its name. If callers take one handler of the hook in all,
//     it is offered in place of its steps, even while it cannot be called.
//
// The failure policy is Fail, because the gateway applies the policies of the handlers. Timeouts leave time for the
// answer to return.
//
// If the gateway answers for a single extension, it announces the handlers of the extension, with their names and their
// failure policies, which the caller applies when it does not reach the gateway.
//
// A handler is left out if a call that comes by way of the asker, which may be a gateway, could not reach it. Gateways
// that register each other would otherwise offer each other their own handlers, under longer and longer names.
//
// asked is the discovery of the group, in the version that the caller uses. Hooks are offered in that version if they
// have it, because Cluster API refuses an answer with a hook or a version that it does not know, and otherwise in their
// newest one. The answer is a response of asked.
func (o Offers) Discovery(snapshot *registry.Snapshot, asked *catalog.Hook, way via.Way) proto.Message {
	var handlers []*hooksv1alpha1.ExtensionHandler
	for _, h := range o.Catalog.Hubs() {
		if known, ok := h.In(asked.Version); ok {
			h = known
		}
		switch {
		case h.Group != asked.Group, h.Singleton():
		case h.Mergeable && !snapshot.IsSidecar():
			handlers = append(handlers, described(strings.ToLower(h.Hook), h, limits.Timeout))
		default:
			chains, steps := snapshot.StandsFor(h.GroupHook())
			for _, c := range chains {
				if x := o.chain(snapshot, c, h, way); x != nil {
					handlers = append(handlers, x)
				}
			}
			for _, e := range snapshot.Handlers(h.GroupHook()) {
				if steps[e.Name] && chains[0].OneHandler { // all chains of a hook are alike in this
					continue
				}
				path := via.Path(e.Handler.Gateways)
				if path.Refuses(way) {
					continue
				}
				name, _ := snapshot.Offered(e)
				x := described(name, h, outerTimeout(e.Handler.Timeout))
				if way != "" {
					o.announce(x, path, snapshot.IsSidecar())
				}
				if snapshot.IsSidecar() && e.Handler.FailurePolicy == hook.Ignore && !h.FailOnly {
					x.FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
				}
				handlers = append(handlers, x)
			}
		}
	}
	slices.SortFunc(handlers, func(a, b *hooksv1alpha1.ExtensionHandler) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	answer := outcome.Success(asked)
	list := answer.ProtoReflect().Mutable(asked.Response.Descriptor().Fields().ByName("handlers")).List()
	for _, h := range handlers {
		catalog.CopySame(list.AppendMutable().Message(), h.ProtoReflect())
	}
	return answer
}

// chain returns the handler that a chain is offered as, or nil if one of its steps is not for the asker.
func (o Offers) chain(
	snapshot *registry.Snapshot, c *registry.Chain, h *catalog.Hook, way via.Way,
) *hooksv1alpha1.ExtensionHandler {
	var timeout time.Duration
	var behind []string // the ids of the gateways behind this one
	for i := range c.Steps {
		e, ok := snapshot.Handler(c.Steps[i].Handler)
		if !ok {
			timeout += limits.DefaultTimeout
			continue
		}
		path := via.Path(e.Handler.Gateways)
		if path.Refuses(way) {
			return nil
		}
		timeout += e.Handler.Timeout
		for id := range strings.SplitSeq(e.Handler.Gateways, ",") {
			if id != "" && !slices.Contains(behind, id) && len(behind) < limits.GatewayHops-1 {
				behind = append(behind, id)
			}
		}
	}
	if len(c.Steps) == 0 { // it is mistaken, and its steps are not known
		timeout = limits.Timeout
	}
	x := described(c.Name, h, outerTimeout(timeout))
	if way != "" {
		o.announce(x, via.Path(strings.Join(behind, ",")), snapshot.IsSidecar())
	}
	return x
}

// announce adds the path of a handler, for a gateway that asks. A gateway for a single extension is no part of it: its
// replicas have ids of their own, and the handlers keep their names.
func (o Offers) announce(x *hooksv1alpha1.ExtensionHandler, path via.Path, sole bool) {
	if !sole {
		path = path.Through(o.Gateway)
	}
	if path != "" {
		x.UnknownMembers = map[string]*hooksv1alpha1.JSON{via.PathMember: {Raw: strconv.AppendQuote(nil, string(path))}}
	}
}

// outerTimeout returns how long callers should wait for a handler: its own timeout, or those of all steps, and the
// margin that the link deadline keeps back, in whole seconds as in the contract.
func outerTimeout(own time.Duration) time.Duration {
	return min((own + bounds.MaxMargin + time.Second - 1).Truncate(time.Second), limits.Timeout)
}

func described(name string, h *catalog.Hook, timeout time.Duration) *hooksv1alpha1.ExtensionHandler {
	return &hooksv1alpha1.ExtensionHandler{
		Name:           name,
		RequestHook:    &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: h.Hook},
		TimeoutSeconds: new(int32(timeout / time.Second)),
		FailurePolicy:  hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
	}
}
