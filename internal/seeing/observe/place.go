// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"log/slog"
	"slices"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// place returns the attributes of a log line that say where a failed call belongs: the Cluster, the handlers that
// failed, or else the one that the caller named, and their extensions. What is not known is left out.
func (c *Call) place() []slog.Attr {
	handlers := failedHandlers(c.Err, nil)
	if len(handlers) == 0 && c.Handler != "" {
		handlers = []string{text.Cut(c.Handler, limits.QuotedBytes)}
	}
	var extensions []string
	snapshot := c.o.metrics.series.snapshots.Snapshot()
	for _, name := range handlers {
		e, ok := snapshot.Registered(name)
		if ok && e.Registration.InProcess == nil && !slices.Contains(extensions, e.Registration.Name) {
			extensions = append(extensions, e.Registration.Name)
		}
	}
	return places(c.Namespace, c.Cluster, text.Join(handlers, ", ", limits.Problems),
		text.Join(extensions, ", ", limits.Problems))
}

// places returns the attributes of what is not empty.
func places(namespace, cluster, handler, extension string) (attrs []slog.Attr) {
	for _, a := range []slog.Attr{
		slog.String("namespace", namespace), slog.String("cluster", cluster), slog.String("handler", handler),
		slog.String("extension", extension),
	} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// failedHandlers adds the handlers that err says failed: its own, or those of the errors that it joins.
func failedHandlers(err error, names []string) []string {
	if e, ok := err.(*hook.Error); ok && e.Handler != "" { //nolint:errorlint // each level of the tree in its turn
		if !slices.Contains(names, e.Handler) {
			names = append(names, e.Handler)
		}
		return names
	}
	switch wrapping := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return failedHandlers(wrapping.Unwrap(), names)
	case interface{ Unwrap() []error }:
		for _, one := range wrapping.Unwrap() {
			names = failedHandlers(one, names)
		}
	}
	return names
}
