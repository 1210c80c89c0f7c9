// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
)

// convertLifts returns the holds that a policy lifts, or nil if it lifts none. A mistake in one of them is a mistake of
// the policy, so that what is not understood lifts nothing.
func convertLifts(
	p *v1alpha1.ExtensionPolicy, path *field.Path, hooks *catalog.Catalog,
) (*policy.LiftedHolds, field.ErrorList) {
	from := p.Spec.LiftedHolds
	if len(from) == 0 {
		return nil, nil
	}
	if len(from) > limits.PolicyLifts {
		return nil, field.ErrorList{field.TooMany(path, len(from), limits.PolicyLifts)}
	}
	all := &policy.LiftedHolds{By: p.Name}
	var errs field.ErrorList
	for i := range from {
		passage, mistakes := convertLift(&from[i], &p.Spec.TargetRef, path.Index(i), hooks)
		if len(mistakes) == 0 && all.Has(passage) {
			mistakes = field.ErrorList{field.Duplicate(path.Index(i), from[i].Handler)}
		}
		errs = append(errs, mistakes...)
		all.Of = append(all.Of, passage)
	}
	return all, errs
}

func convertLift(
	l *v1alpha1.LiftedHold, target *v1alpha1.TargetReference, path *field.Path, hooks *catalog.Catalog,
) (passage policy.Passage, errs field.ErrorList) {
	wrong := func(member, value, detail string) {
		errs = append(errs, field.Invalid(path.Child(member), text.Cut(value, limits.QuotedBytes), detail))
	}
	handler, extension, _ := strings.Cut(l.Handler, ".")
	if extension != target.Name || handler == "" || target.Handler != "" && handler != target.Handler {
		of := target.Handler
		if of == "" {
			of = "HANDLER"
		}
		wrong("handler", l.Handler, fmt.Sprintf("must be %s.%s, a handler of spec.targetRef", of, target.Name))
	}
	names, hasVersion := liftable(hooks)
	if !slices.Contains(names, l.Hook) {
		wrong("hook", l.Hook, "must be a lifecycle hook that holds Clusters: "+strings.Join(names, ", "))
	}
	namespace, cluster, _ := strings.Cut(l.Cluster, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(cluster)) > 0 {
		wrong("cluster", l.Cluster, "must be namespace/name of a Cluster")
	}
	switch {
	case l.UID == "":
		errs = append(errs, field.Required(path.Child("uid"), "must be metadata.uid of the Cluster: another "+
			"Cluster of the same name is still held"))
	case len(l.UID) > limits.UIDBytes:
		wrong("uid", l.UID, fmt.Sprintf("must have at most %d bytes", limits.UIDBytes))
	}
	switch needs := hasVersion[l.Hook]; {
	case needs && l.Version == "":
		errs = append(errs, field.Required(path.Child("version"), "must be the Kubernetes version that the "+
			"Cluster is upgraded to: the next upgrade is still held"))
	case !needs && l.Version != "" && slices.Contains(names, l.Hook):
		errs = append(errs, field.Forbidden(path.Child("version"), l.Hook+" is not about a version"))
	}
	return policy.Passage{
		Handler: handler, Hook: l.Hook, Namespace: namespace, Cluster: cluster, UID: l.UID, Version: l.Version,
	}, errs
}

// JudgeLifts returns the verdict on a policy that is in effect, and of which v is the verdict but for the holds that it
// lifts. handlers are those of its target, with their hooks.
func (p *Policy) JudgeLifts(v kinds.Verdict, handlers map[string]hook.GroupHook) kinds.Verdict {
	if p.Compiled.Lifted == nil {
		return v
	}
	for i := range p.Compiled.Lifted.Of {
		l := &p.Compiled.Lifted.Of[i]
		if want := (hook.GroupHook{Group: hook.Group, Hook: l.Hook}); handlers[l.Handler] != want {
			return kinds.Verdictf(v1alpha1.TargetNotFoundReason,
				"In effect for %s, except for spec.liftedHolds[%d]: ExtensionConfig %q has no handler %q for the hook %s",
				p.Target, i, p.Target.ExtensionConfig, l.Handler, l.Hook)
		}
	}
	return v
}

// liftable returns the hooks whose holds can be lifted, and which of them are about a version.
func liftable(hooks *catalog.Catalog) (names []string, hasVersion map[string]bool) {
	hasVersion = map[string]bool{}
	for _, h := range hooks.Hubs() {
		if h.Liftable() {
			names = append(names, h.Hook)
			_, hasVersion[h.Hook] = catalog.UpgradeVersionOf(h.Request.Zero().Interface())
		}
	}
	return names, hasVersion
}
