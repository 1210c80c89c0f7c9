// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Discover returns the gateway's own handlers, so that one ExtensionConfig registers it with Cluster API:
//
//   - for each lifecycle hook one handler named as the hook in lower case, which stands for every handler of that hook. It is
//     always there, so that nothing changes for the caller when extensions come and go;
//   - for every other hook one handler for each registered one, under its label.
//
// The failure policy is Fail, because the handlers' own were applied already. Timeouts leave room for the way back.
//
// Where the gateway answers for one extension alone, its handlers are that extension's, with their names and their failure
// policies, which are for the caller to apply where it does not reach the gateway.
//
// asked is the version of Discovery that the caller uses. Hooks are offered in that version where they have it, because
// Cluster API refuses an answer that names a version which it does not know; otherwise in the newest. The answer is one of asked.
func (d *Dispatcher) Discover(cat *catalog.Catalog, asked *catalog.Hook) (proto.Message, error) {
	snapshot := d.registry.Snapshot()
	if !snapshot.Ready() {
		return nil, hook.Errorf(hook.NotReady, "%s: try again", snapshot.Unready())
	}
	var handlers []*hooksv1alpha1.ExtensionHandler
	for _, h := range cat.Hubs() {
		if known, ok := h.In(asked.Version); ok && h.Group == asked.Group {
			h = known
		}
		switch {
		case h.Singleton():
		case h.Mergeable && !snapshot.Sole():
			handlers = append(handlers, described(strings.ToLower(h.Hook), h, maxTimeout))
		default:
			for _, e := range snapshot.Handlers(h.GroupHook()) {
				x := described(e.Label, h, outerTimeout(e))
				if snapshot.Sole() && e.Handler.FailurePolicy == hook.Ignore {
					x.FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
				}
				handlers = append(handlers, x)
			}
		}
	}
	slices.SortFunc(handlers, func(a, b *hooksv1alpha1.ExtensionHandler) int { return cmp.Compare(a.GetName(), b.GetName()) })
	answer := newSuccess(asked)
	list := answer.ProtoReflect().Mutable(asked.Response.Descriptor().Fields().ByName("handlers")).List()
	for _, h := range handlers {
		catalog.CopySame(list.AppendMutable().Message(), h.ProtoReflect())
	}
	return answer, nil
}

// outerTimeout is what callers shall wait for a handler: its own timeout and the margin that withDeadline keeps, in whole
// seconds as the contract has them.
func outerTimeout(e *registry.Entry) time.Duration {
	return min((e.Handler.Timeout + maxMargin + time.Second - 1).Truncate(time.Second), maxTimeout)
}

func described(name string, h *catalog.Hook, timeout time.Duration) *hooksv1alpha1.ExtensionHandler {
	return &hooksv1alpha1.ExtensionHandler{
		Name:           name,
		RequestHook:    &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: h.Hook},
		TimeoutSeconds: proto.Int32(int32(timeout / time.Second)),
		FailurePolicy:  hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL,
	}
}
