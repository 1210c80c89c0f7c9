// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"log/slog"
	"strings"
)

// quietEnd leaves out what a manager of controller-runtime logs as an error when it stops and gives up its Lease, as it
// should.
type quietEnd struct{ slog.Handler }

// Handle implements slog.Handler.
func (h quietEnd) Handle(ctx context.Context, r slog.Record) error {
	lost := false
	if r.Message == "error received after stop sequence was engaged" {
		r.Attrs(func(a slog.Attr) bool {
			lost = lost || strings.Contains(a.Value.String(), "leader election lost")
			return !lost
		})
	}
	if lost {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quietEnd) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietEnd{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quietEnd) WithGroup(name string) slog.Handler { return quietEnd{h.Handler.WithGroup(name)} }
