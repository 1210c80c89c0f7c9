// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// InProcess is what objects of all kinds say whose handler needs no server: which requests of its hook it answers, and
// in which version it understands their objects.
type InProcess struct {
	Kind, Name, Handler string

	NamespaceSelector, ObjectSelector *metav1.LabelSelector

	MatchConditions   []v1alpha1.MatchCondition
	ClusterAPIVersion v1alpha1.ClusterAPIVersion
}

// Compile returns the registration with the handler, which answers nothing yet. path is that of the fields.
func (s *InProcess) Compile(
	h *catalog.Hook, path *field.Path, cel *policy.Compiler, types *policy.Types,
) (registry.Registration, field.ErrorList) {
	namespaces, errs := ConvertSelector(s.NamespaceSelector, path.Child("namespaceSelector"))
	objects, wrong := ConvertSelector(s.ObjectSelector, path.Child("objectSelector"))
	errs = append(errs, wrong...)
	at := path.Child("matchConditions")
	conditions, wrong := CompileConditions(s.MatchConditions, at, cel)
	errs = append(errs, wrong...)
	for _, err := range types.Check(conditions, h.GroupHook()) {
		errs = append(errs, field.Invalid(at.Index(err.Index).Child("expression"), field.OmitValueType{}, err.Message))
	}
	switch s.ClusterAPIVersion {
	case "", v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2:
	default:
		errs = append(errs, field.NotSupported(path.Child("clusterAPIVersion"), s.ClusterAPIVersion,
			[]v1alpha1.ClusterAPIVersion{v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2}))
	}
	reg := registry.Registration{Name: s.Name, NamespaceSelector: namespaces, Handlers: []registry.Handler{{
		Name: s.Handler, Hook: h.GroupVersionHook, Timeout: limits.DefaultTimeout, FailurePolicy: hook.Fail,
		ClusterAPIVersion: string(s.ClusterAPIVersion),
	}}}
	if objects != nil || conditions != nil {
		reg.Selection = &policy.Policy{Name: s.Name, Kind: s.Kind, ObjectSelector: objects, Conditions: conditions}
	}
	return reg, errs
}

// NoHook returns the mistake in the name of a hook, of which known are the possible ones: those that can do what can
// says, such as "can have a chain".
func NoHook(path *field.Path, name, can string, known []string) *field.Error {
	quoted := text.Cut(name, limits.QuotedBytes)
	switch meant := text.Nearest(quoted, known); {
	case name == "":
		return field.Required(path, "must be the name of a hook")
	case meant != "":
		return field.Invalid(path, quoted, fmt.Sprintf("not a hook that %s: did you mean %q?", can, meant))
	}
	return field.NotSupported(path, quoted, known)
}

// JudgeLocal returns the verdict on a valid registration without a server, such as that of a HookRule, whose first
// handler answers its hook.
func JudgeLocal(s *registry.Snapshot, reg *registry.Registration, hooks *catalog.Catalog) Verdict {
	if taken := s.TakenLocal(reg.InProcess.Kind(), reg.Name); taken != "" {
		return Verdictf(v1alpha1.NameCollisionReason, "Not served: %q is also %s: rename one of the two",
			reg.Name, taken)
	}
	if withheld := s.Withheld(reg.Name); len(withheld) > 0 {
		return Verdictf(v1alpha1.WithheldReason, "Not served: spec.hooks of %s does not list the hook %s",
			s.Policies(reg.Name).All, withheld[0].Hook.Hook)
	}
	h := reg.Handlers[0]
	hub, _ := hooks.Lookup(h.Hook)
	if _, steps := s.StandsFor(h.Hook.GroupHook()); hub != nil && !steps[h.Name+"."+reg.Name] {
		if message := SeveralOffered(s, hub); message != "" {
			return Verdict{v1alpha1.SeveralOfferedReason, message}
		}
	}
	if reg.Audit {
		return Verdictf(v1alpha1.AuditReason, "Answers %s as handler %s.%s, but only audits: the answer is as if "+
			"the rule did not apply, and the rule's own answer is logged and counted", h.Hook.Hook, h.Name, reg.Name)
	}
	return Verdictf(v1alpha1.ReadyReason, "Answers %s as handler %s.%s", h.Hook.Hook, h.Name, reg.Name)
}

// ClosesHook returns Kind.Closes of a kind without servers, whose handlers have that name: it closes the hook of an
// object in its namespaces.
func ClosesHook(handler string) func(s Spec, c *Closed) {
	return func(s Spec, c *Closed) {
		c.NamespaceSelector = s.Namespaces()
		if !Unusable(c.Name) {
			c.Extensions = []string{c.Name}
		}
		h := s.Hook()
		if h == nil {
			c.Hooks = s.UnknownHook()
			return
		}
		c.Hooks = []hook.GroupHook{h.GroupHook()}
		if reg, ok := c.Closure.Registration(handler, h.GroupVersionHook); ok {
			c.Registration = &reg
		}
	}
}

// AdmitLocal returns Rules.Admit of a kind without servers, whose handlers have that name. registered returns what is
// registered, or nil where that is not known.
func AdmitLocal(
	kind, handler string, compile func(Object) (any, field.ErrorList), registered func() *registry.Snapshot,
) func(before, o Object) (warnings []string, errs field.ErrorList) {
	return func(before, o Object) (warnings []string, errs field.ErrorList) {
		taken := ""
		if s := registered(); s != nil {
			taken = s.TakenNameOfLocal(kind, o.GetName(), handler)
		}
		if taken != "" && before == nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.GetName(),
				"is "+taken+": choose another name"))
		}
		_, more := compile(o)
		if errs = append(errs, more...); len(errs) == 0 && taken != "" {
			warnings = append(warnings, "metadata.name: is "+taken+", so one of the two is not served")
		}
		return warnings, errs
	}
}
