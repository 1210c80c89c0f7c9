// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

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

// Serverless is what objects of all kinds say whose handler needs no server: which requests of its hook it answers, and
// in which version it understands their objects.
type Serverless struct {
	Kind, Name, Handler string

	NamespaceSelector, ObjectSelector *metav1.LabelSelector

	MatchConditions   []v1alpha1.MatchCondition
	ClusterAPIVersion v1alpha1.ClusterAPIVersion
}

// Compile returns the registration with the handler, which answers nothing yet. path is that of the fields.
func (s *Serverless) Compile(
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

// NoHook returns the mistake in the name of a hook, of which known are the possible ones. who answers hooks, such as "a
// rule".
func NoHook(path *field.Path, name, who string, known []string) *field.Error {
	quoted := text.Cut(name, limits.QuotedBytes)
	switch meant := text.Nearest(quoted, known); {
	case name == "":
		return field.Required(path, "must be the name of a hook")
	case meant != "":
		return field.Invalid(path, quoted, fmt.Sprintf("no hook that %s can answer has this name: did you mean %q?",
			who, meant))
	}
	return field.NotSupported(path, quoted, known)
}
