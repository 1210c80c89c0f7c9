// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/extension"
)

const (
	// WarningHeader carries the warnings of a call in its answer: over REST one header each, over gRPC a trailer. They
	// have the form of RFC 7234: 299 - "<text>".
	WarningHeader = "Warning"
	// maxWarnings bounds the warnings of an answer, besides the one that counts those left out.
	maxWarnings = 10
)

// warnings collects the warnings for the caller of one call, which are about deprecated versions of hooks. It is safe for
// concurrent use.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// values returns the values of WarningHeader: sorted, each once, and at most maxWarnings and one. It returns nil if there
// are none.
func (w *warnings) values() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) == 0 {
		return nil
	}
	texts := slices.Sorted(slices.Values(w.texts))
	if n := len(texts) - maxWarnings; n > 0 {
		texts = append(texts[:maxWarnings], fmt.Sprintf("and %d more handlers implement deprecated hooks", n))
	}
	for i, text := range texts {
		texts[i] = "299 - " + strconv.Quote(text)
	}
	return texts
}

// warnOfCaller warns, and counts, that the call itself uses a deprecated version of the hook.
func warnOfCaller(ctx context.Context, h *catalog.Hook) {
	if since, instead, ok := h.Deprecated(); ok {
		warn(ctx, h, "caller", "", fmt.Sprintf("%s is deprecated since %s of the gateway: call %s", h, since, instead))
	}
}

// warnOfHandler warns, and counts, that the handler that is called implements a deprecated version of the hook.
func warnOfHandler(ctx context.Context, c extension.Call) {
	h, ok := c.Hook.In(c.Handler.Handler.Hook.Version)
	if !ok || c.PolicyError != nil {
		return
	}
	if since, instead, ok := h.Deprecated(); ok {
		warn(ctx, h, "handler", c.Handler.Name,
			fmt.Sprintf("handler %q implements %s, which is deprecated since %s of the gateway: it should implement %s", c.Handler.Name, h, since, instead))
	}
}

func warn(ctx context.Context, h *catalog.Hook, side, handler, text string) {
	in := inboundFrom(ctx)
	if in == nil {
		return
	}
	in.warnings.add(text)
	in.o.metrics.deprecatedCalls.WithLabelValues(h.Group, h.Version, h.Hook, handler, side).Inc()
}
