// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// abandon removes the finalizer of an object although what it stands for may still exist, because its annotation says
// so.
func (r *base) abandon(ctx context.Context, o client.Object, finalizer, externalID, class string) error {
	if err := r.unfinalize(ctx, o, finalizer, notice{corev1.EventTypeWarning, abandonedEvent, "Delete",
		"abandoned: whatever exists in the backend with the externalID stays there"}); err != nil {
		return err
	}
	kind := kindOf(o)
	r.metrics.abandoned.WithLabelValues(kind).Inc()
	r.logger.LogAttrs(ctx, slog.LevelWarn, "abandoned: whatever exists in the backend with the externalID stays "+
		"there",
		slog.String("kind", kind), slog.String("namespace", o.GetNamespace()), slog.String("name", o.GetName()),
		slog.String("externalID", externalID), slog.String("class", class))
	return nil
}
