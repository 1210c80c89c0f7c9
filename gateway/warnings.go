// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/extension"
)

// WarningHeader carries the warnings of a call in its answer: over REST one header each, over gRPC a trailer.
const WarningHeader = "Warning"

// warnOfCaller warns, and counts, that the call itself uses a deprecated version of the hook.
func warnOfCaller(ctx context.Context, h *catalog.Hook) {
	if in := callFrom(ctx); in != nil && in.warnings.AddCaller(h) {
		in.o.metrics.deprecatedCalls.WithLabelValues(h.Group, h.Version, h.Hook, "", "caller").Inc()
	}
}

// warnOfHandler warns, and counts, that the handler that is called implements a deprecated version of the hook.
func warnOfHandler(ctx context.Context, c extension.Call) {
	h, ok := c.Hook.In(c.Handler.Handler.Hook.Version)
	if !ok || c.PolicyError != nil {
		return
	}
	if in := callFrom(ctx); in != nil && in.warnings.AddHandler(h, c.Handler.Name) {
		in.o.metrics.deprecatedCalls.WithLabelValues(h.Group, h.Version, h.Hook, c.Handler.Name, "handler").Inc()
	}
}
