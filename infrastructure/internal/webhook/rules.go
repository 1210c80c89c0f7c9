// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/infrastructure/parameters"
	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// rules are the rules for objects and templates.
type rules struct {
	lookup  lookup
	schemas *parameters.Cache
}

// immutable returns the problems of an update that changes what must stay.
func (rules) immutable(old, v view, request admission.Request) field.ErrorList {
	var errs field.ErrorList
	annotation := field.NewPath("metadata", "annotations").Key(clusterv1.ManagedByAnnotation)
	_, was := old.metadata.Annotations[clusterv1.ManagedByAnnotation]
	_, is := v.metadata.Annotations[clusterv1.ManagedByAnnotation]
	if v.kind == v1alpha1.HookgateClusterKind && v.template == nil && was && !is {
		// Cluster API asks for it: two would otherwise manage the same infrastructure.
		errs = append(errs, field.Forbidden(annotation, "must not be removed: another tool manages the "+
			"infrastructure"))
	}
	if old.instance() != v.instance() {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.InstanceAnnotation),
			"must not change: the extension would make another machine beside the instance"))
	}
	if v.template != nil && !sameSpec(old, v) && !topologyDryRun(v, request) {
		errs = append(errs, field.Forbidden(v.at, "must not change: make another "+v.named()+" and refer to that"))
	}
	return errs
}

// sameSpec reports whether two states of a template make the same objects.
func sameSpec(old, v view) bool {
	return equality.Semantic.DeepEqual(old.spec, v.spec) || equalJSON(old.spec, v.spec)
}

// equalJSON reports whether two values have the same JSON, but for the order and the form of it.
func equalJSON(a, b any) bool {
	var x, y any
	for from, to := range map[*any]*any{&a: &x, &b: &y} {
		text, err := json.Marshal(*from)
		if err != nil || json.Unmarshal(text, to) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}

// topologyDryRun reports whether Cluster API's topology controller asks what an update would do, which it marks, as
// topology.IsDryRunRequest of Cluster API does.
func topologyDryRun(v view, request admission.Request) bool {
	_, marked := v.metadata.Annotations[clusterv1.TopologyDryRunAnnotation]
	return marked && request.DryRun != nil && *request.DryRun
}

// check returns the warnings about the new state of an object, and its problems. It leaves out those of the old state,
// which is nil for a new object.
func (r rules) check(ctx context.Context, old *view, v view) (admission.Warnings, field.ErrorList) {
	var errs field.ErrorList
	if v.template != nil {
		errs = append(errs, v.template.Validate(field.NewPath("spec", "template", "metadata"))...)
	}
	ref := v.credentials
	if ref != nil && v.template == nil && ref.Namespace != "" && ref.Namespace != v.metadata.Namespace {
		errs = append(errs, field.Invalid(v.at.Child("credentialsRef", "namespace"), ref.Namespace,
			"must be the namespace of the object, or be left out"))
	}
	warnings, more := r.checkParameters(ctx, v, old == nil || old.class != v.class || !equalJSON(text(old), text(&v)))
	errs = append(errs, more...)
	if old != nil && len(warnings)+len(errs) > 0 {
		// What the old state has is known, and must not block an update of something else.
		warned, known := r.check(ctx, nil, *old)
		errs = without(errs, known)
		warnings = slices.DeleteFunc(warnings, func(w string) bool { return slices.Contains(warned, w) })
	}
	if old == nil || old.identity != v.identity {
		warnings = append(warnings, r.identityWarnings(ctx, v)...)
	}
	return warnings, errs
}

// identityWarnings returns what keeps the identity of an object from being used now.
func (r rules) identityWarnings(ctx context.Context, v view) admission.Warnings {
	if v.identity == "" || v.template != nil {
		return nil
	}
	path, i := v.at.Child("identityRef", "name"), &v1alpha1.HookgateClusterIdentity{}
	switch {
	case !r.lookup.get(ctx, client.ObjectKey{Name: v.identity}, i):
		return admission.Warnings{fmt.Sprintf(
			"%s: there is no HookgateClusterIdentity %q yet; nothing is made until it appears", path, v.identity)}
	case !r.lookup.allowed(ctx, i.Spec.AllowedNamespaces, v.metadata.Namespace):
		return admission.Warnings{fmt.Sprintf("%s: HookgateClusterIdentity %q does not allow the namespace %q "+
			"(spec.allowedNamespaces); nothing is made until the namespace is allowed", path, v.identity, v.metadata.Namespace)}
	}
	return nil
}

// text returns the parameters of a view for a comparison.
func text(v *view) json.RawMessage {
	if len(v.parameters) == 0 {
		return json.RawMessage("null")
	}
	return v.parameters
}

// without returns the problems of a list that are not known. Labels alone may have thousands.
func without(list, known field.ErrorList) field.ErrorList {
	texts := map[string]bool{}
	for _, e := range known {
		texts[e.Error()] = true
	}
	return slices.DeleteFunc(list, func(e *field.Error) bool { return texts[e.Error()] })
}

// checkParameters checks the parameters of an object, and that its class can be used.
func (r rules) checkParameters(ctx context.Context, v view, changed bool) (admission.Warnings, field.ErrorList) {
	if !changed || v.instance() != "" {
		return nil, nil
	}
	at := v.at.Child("parameters")
	if errs := parameters.Check(at, v.parameters); len(errs) > 0 {
		return nil, errs
	}
	name, class := r.lookup.class(ctx, v)
	warnings := r.classWarnings(ctx, v, name, class)
	if class == nil || !class.Announced() {
		return warnings, nil
	}
	announced, defaults := class.ParametersOf(v.kind, v.pool)
	schema, err := r.schemas.Compile(raw(announced))
	if err != nil {
		return warnings, nil
	}
	if v.template == nil || v.owned() {
		_, errs := schema.Resolve(ctx, at, raw(defaults), v.parameters)
		return warnings, errs
	}
	for _, problem := range schema.ValidatePartly(ctx, at, v.parameters) {
		warnings = append(warnings, problem.Error())
	}
	return warnings, nil
}

// classWarnings returns what keeps the class of an object from being used now.
func (r rules) classWarnings(
	ctx context.Context, v view, name string, class *v1alpha1.InfrastructureClass,
) admission.Warnings {
	if v.class == "" {
		return nil // the warning belongs to the cluster
	}
	path := v.at.Child("infrastructureClassName")
	switch {
	case class == nil:
		return admission.Warnings{fmt.Sprintf(
			"%s: there is no InfrastructureClass %q yet; nothing is made until it appears", path, name)}
	case v.template == nil && !r.lookup.allowed(ctx, class.Spec.AllowedNamespaces, v.metadata.Namespace):
		return admission.Warnings{fmt.Sprintf("%s: InfrastructureClass %q does not allow the namespace %q "+
			"(spec.allowedNamespaces); nothing is made until the namespace is allowed", path, name, v.metadata.Namespace)}
	case !class.Announced():
		return admission.Warnings{fmt.Sprintf("%s: the extension of InfrastructureClass %q has not announced its "+
			"parameters yet, so they were not checked", path, name)}
	}
	return nil
}
