// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// audit keeps the answers of registrations that only audit from the caller, and their errors, too: what they would have
// said is in the result. audited, unless it is nil, is called with it. Only a caller who has left gets an error.
func audit(audited func(rule, namespace, cluster, message string)) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			result, err := next(ctx, c)
			registration := c.Handler.Registration
			if !registration.Audit || hook.KindOf(err) == hook.Canceled {
				return result, err
			}
			if would := wouldSay(result.Response, err); would != nil {
				would.Namespace, would.Cluster = c.Cluster()
				if result.Audited = would; audited != nil {
					audited(registration.Name, would.Namespace, would.Cluster, would.String())
				}
			}
			result.Response = outcome.Success(c.Hook)
			return result, nil
		}
	}
}

// wouldSay returns what the caller does not get, nil if it is a success without more.
func wouldSay(answer any, err error) *extension.Audited {
	if err != nil {
		return &extension.Audited{Outcome: extension.AuditedError, Message: err.Error()}
	}
	m, _ := answer.(outcome.Response)
	if message, failed := catalog.FailureOf(m); failed {
		return &extension.Audited{Outcome: extension.AuditedFailure, Message: message}
	}
	if outcome.Holds(m) {
		return &extension.Audited{Outcome: extension.AuditedHold, Message: catalog.MessageOf(m)}
	}
	if patches, ok := m.(*hooksv1alpha1.GeneratePatchesResponse); ok && len(patches.GetItems()) > 0 {
		return &extension.Audited{
			Outcome: extension.AuditedPatches, Message: fmt.Sprintf("patches of templates: %d", len(patches.GetItems())),
		}
	}
	return nil
}
