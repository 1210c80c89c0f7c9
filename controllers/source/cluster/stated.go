// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// keepStated brings what the extension has stated of the objects that its handlers understand into the annotation of config, if it is
// not there yet, and returns config as it is then. It comes before the status: whoever follows sees the statement of a new handler before the
// handler, and that of one which he knows in the very event that brings it.
func (r *reconciler) keepStated(ctx context.Context, config *runtimev1.ExtensionConfig, handlers []registry.Handler) (*runtimev1.ExtensionConfig, error) {
	stated := extensionconfig.FormatStatedVersions(handlers)
	if before, ok := config.Annotations[extensionconfig.StatedVersionsAnnotation]; before == stated && ok == (stated != "") {
		return config, nil
	}
	written := config.DeepCopy()
	if stated == "" {
		delete(written.Annotations, extensionconfig.StatedVersionsAnnotation)
	} else {
		metav1.SetMetaDataAnnotation(&written.ObjectMeta, extensionconfig.StatedVersionsAnnotation, stated)
	}
	// With the lock, what comes back is what was discovered, and the status that is written next is about it.
	patch := client.MergeFromWithOptions(config, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, written, patch); err != nil {
		return nil, fmt.Errorf("write annotation %s: %w", extensionconfig.StatedVersionsAnnotation, err)
	}
	return written, nil
}

// readStated logs what is wrong with the annotation of config, if that is new.
func (r *reconciler) readStated(config *runtimev1.ExtensionConfig) {
	_, errs := extensionconfig.StatedVersions(config)
	if len(errs) == 0 {
		r.misstated.Delete(config.Name)
		return
	}
	text := errs.ToAggregate().Error()
	if before, ok := r.misstated.Swap(config.Name, text); !ok || before != text {
		r.logger.Warn("annotation is wrong, and what is wrong in it is ignored", "extensionConfig", config.Name, "error", text)
	}
}
