// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
)

// maxNamedHandlers is how many handlers a message names.
const maxNamedHandlers = 3

// HookVersions checks the versions of hooks that the last known handlers of an ExtensionConfig, those in its status,
// implement. removed is an error if all of them are versions that the gateway has removed, so that it could call none;
// it is nil for an ExtensionConfig that is being deleted or is paused, because it is not called. Otherwise, outdated
// has one text for each deprecated or removed version. Both results depend only on the handlers.
func HookVersions(config *runtimev1.ExtensionConfig, hooks *catalog.Catalog) (removed *field.Error, outdated []string) {
	path := field.NewPath("status", "handlers")
	handlers := map[*catalog.Version][]string{}
	gone := 0
	for i := range config.Status.Handlers {
		status := &config.Status.Handlers[i]
		gvh, err := hook.Parse(status.RequestHook.APIVersion, status.RequestHook.Hook)
		if err != nil {
			continue // LastKnownHandlers reports it
		}
		v, ok := hooks.Version(gvh.Group, gvh.Version)
		if !ok || v.Lifetime.Deprecated == "" && !v.Removed() {
			continue
		}
		if v.Removed() {
			gone++
		}
		handlers[v] = append(handlers[v], status.Name)
	}
	_, paused := config.Annotations[clusterv1.PausedAnnotation]
	refused := gone > 0 && gone == len(config.Status.Handlers) && !paused && config.DeletionTimestamp.IsZero()
	versions := slices.SortedFunc(maps.Keys(handlers),
		func(a, b *catalog.Version) int { return strings.Compare(a.APIVersion(), b.APIVersion()) })
	var reasons []string
	for _, v := range versions {
		what := "are deprecated since release " + v.Lifetime.Deprecated + " of the gateway"
		if v.Removed() {
			what = "were removed in release " + v.Lifetime.Removed + " of the gateway"
		}
		if refused {
			reasons = append(reasons, fmt.Sprintf("hooks of %s %s", v.APIVersion(), what))
			continue
		}
		outdated = append(outdated,
			fmt.Sprintf("%s: %s: hooks of %s %s: upgrade the extension to a version that implements hooks of %s",
				path, text.Join(slices.Sorted(slices.Values(handlers[v])), ", ", maxNamedHandlers), v.APIVersion(),
				what, v.Instead()))
	}
	if !refused {
		return nil, outdated
	}
	return field.Forbidden(path,
		fmt.Sprintf("the gateway can call none of the handlers: %s; upgrade the extension to a version that implements "+
			"hooks of %s, and remove the old status from the ExtensionConfig",
			strings.Join(reasons, ", "), versions[0].Instead())), nil
}
