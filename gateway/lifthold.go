// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// liftHold lets a Cluster go on that an extension holds, if its ExtensionPolicy says so. The extension is asked first,
// and its answer is recorded unchanged. lifted, unless it is nil, is called with each hold that was lifted.
func liftHold(lifted func(policy, handler, namespace, cluster, message string)) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			result, err := next(ctx, c)
			if err != nil || !mayLift(&c) || !outcome.Holds(result.Response) {
				return result, err
			}
			if result.LiftedBy = liftedBy(&c); result.LiftedBy == "" {
				return result, nil
			}
			namespace, cluster := c.Cluster()
			message := cmp.Or(catalog.MessageOf(result.Response), "it does not say why")
			if lifted != nil {
				lifted(result.LiftedBy, c.Handler.Name, namespace, cluster, message)
			}
			lift(result.Response, fmt.Sprintf("hold lifted by liftedHolds of ExtensionPolicy %q: %s", result.LiftedBy, message))
			return result, nil
		}
	}
}

// mayLift reports whether the policy of a handler lifts holds of it.
func mayLift(c *extension.Call) bool {
	return c.Handler.Policy != nil && c.Handler.Policy.Lifted != nil && c.Hook.Liftable() &&
		c.Handler.Registration.InProcess == nil
}

// liftedBy returns the name of the ExtensionPolicy that lets the Cluster of a call go on if its handler holds it; empty
// for none.
func liftedBy(c *extension.Call) string {
	if !mayLift(c) || !c.Handler.Policy.Lifted.Has(passageOf(c)) {
		return ""
	}
	return c.Handler.Policy.Lifted.By
}

// lift takes the hold off an answer, which belongs to the call.
func lift(held proto.Message, message string) {
	catalog.SetStatus(held, catalog.Success, redact.Bounded(message, limits.MessageBytes))
	m := held.ProtoReflect()
	m.Clear(m.Descriptor().Fields().ByName("retry_after_seconds"))
}

// passageOf returns the passage of a Cluster that a call is about. What the request lacks is empty there, and no policy
// has it.
func passageOf(c *extension.Call) policy.Passage {
	p := policy.Passage{Handler: c.Handler.Handler.Name, Hook: c.Hook.Hook}
	p.Namespace, p.Cluster = c.Cluster()
	request := c.Message()
	if of, ok := request.(interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}); ok {
		uid, err := jsonscan.Lookup(of.GetCluster().GetRaw(), "metadata", "uid")
		if err == nil {
			p.UID, _ = jsonscan.String(uid)
		}
	}
	p.Version, _ = catalog.UpgradeVersionOf(request)
	return p
}
