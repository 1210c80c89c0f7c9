// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// Whoever lifts a hold with a misspelt name would believe that the Cluster goes on. What the user may not read is not
// checked.

// checkRule returns an error if there is no such rule, or one of another hook. hook may be empty.
func (w *liftWork) checkRule(ctx context.Context, name, hook string) error {
	of := &v1alpha1.HookRule{}
	switch err := w.Get(ctx, client.ObjectKey{Name: name}, of); {
	case apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %q, see \"hookgate get holds\"", hookrule.Kind, name)
	case err != nil:
		return fmt.Errorf("get %s %q: %w", hookrule.Kind, name, err)
	case hook != "" && hook != of.Spec.Hook:
		return fmt.Errorf("--hook %s: %s %q is for %s", hook, hookrule.Kind, name, of.Spec.Hook)
	}
	return nil
}

// checkHandler returns an error if no extension or rollout has such a handler.
func (w *liftWork) checkHandler(ctx context.Context, name, handler, extension string) error {
	for _, group := range []string{controllers.ClusterAPIGroup, controllers.HookgateGroup} {
		for _, version := range []string{"v1beta2", "v1alpha1"} {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "ExtensionConfig"})
			switch err := w.Get(ctx, client.ObjectKey{Name: extension}, o); {
			case err == nil:
				return checkRegistered(o, name)
			case apierrors.IsForbidden(err):
				return nil
			case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
				return fmt.Errorf("get ExtensionConfig %q: %w", extension, err)
			}
		}
	}
	err := w.Get(ctx, client.ObjectKey{Name: extension}, &v1alpha1.ExtensionRollout{})
	switch {
	case apierrors.IsNotFound(err) && handler == hookjob.HandlerName:
		return fmt.Errorf("%s: the hold of a HookJob cannot be lifted: it ends when the Job succeeds", name)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no ExtensionConfig or %s %q, see \"hookgate get holds\"", rollout.Kind, extension)
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("get %s %q: %w", rollout.Kind, extension, err)
	}
	return nil
}

// checkRegistered returns an error if an ExtensionConfig has handlers, and none of that name.
func checkRegistered(extensionConfig *unstructured.Unstructured, handler string) error {
	listed, _, _ := unstructured.NestedSlice(extensionConfig.Object, "status", "handlers")
	names := make([]string, 0, len(listed))
	for _, h := range listed {
		members, _ := h.(map[string]any)
		name, _ := members["name"].(string)
		names = append(names, text.Cut(name, limits.QuotedBytes))
	}
	if len(names) == 0 || slices.Contains(names, handler) {
		return nil
	}
	return fmt.Errorf("ExtensionConfig %q has no handler %s: it has %s", extensionConfig.GetName(), handler,
		text.Join(names, ", ", maxHandlers))
}

// maxHandlers is how many handlers an error names.
const maxHandlers = 8
