// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// failurePolicy hides the errors of handlers that are registered with the policy Ignore, if they are of a kind that can
// be ignored, and the hook is not one whose errors never are. The response is then a success without any part of an
// incomplete answer. Its message says which handler was ignored, and the kind of its error, but not the error's text,
// which may change while the extension is down.
func failurePolicy(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		if err == nil || c.Handler.Handler.FailurePolicy != hook.Ignore || c.Hook.FailOnly ||
			!hook.KindOf(err).Ignorable() {
			return result, err
		}
		result.Response, result.Ignored = ignoredAnswer(c.Hook, c.Handler.Name, err), err
		return result, nil
	}
}

// ignoredAnswer returns the answer that replaces an error which is ignored.
func ignoredAnswer(h *catalog.Hook, handler string, err error) proto.Message {
	return outcome.New(h, catalog.Success, fmt.Sprintf("ignored: handler %q: %s", handler, hook.KindOf(err)))
}

// policyError fails the calls to handlers whose ExtensionPolicy could not be evaluated. It is inside the observer and
// the failure policy, so that they treat such a call as any other that fails.
func policyError(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		if c.PolicyError != nil {
			return extension.Result{}, c.PolicyError
		}
		return next(ctx, c)
	}
}
