// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/policy"
)

// Selection says which requests of its hook an object answers that needs no server.
type Selection struct {
	Kind, Name        string
	ObjectSelector    *metav1.LabelSelector
	MatchConditions   []v1alpha1.MatchCondition
	ClusterAPIVersion v1alpha1.ClusterAPIVersion
}

// Compile compiles the selector and the conditions for requests of a hook, and returns nil if there are none. path is
// that of the fields.
func (s *Selection) Compile(
	h hook.GroupHook, path *field.Path, cel *policy.Compiler, types *policy.Types,
) (*policy.Policy, field.ErrorList) {
	objects, errs := ConvertSelector(s.ObjectSelector, path.Child("objectSelector"))
	at := path.Child("matchConditions")
	conditions, wrong := CompileConditions(s.MatchConditions, at, cel)
	errs = append(errs, wrong...)
	for _, err := range types.Check(conditions, h) {
		errs = append(errs, field.Invalid(at.Index(err.Index).Child("expression"), field.OmitValueType{}, err.Message))
	}
	switch s.ClusterAPIVersion {
	case "", v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2:
	default:
		errs = append(errs, field.NotSupported(path.Child("clusterAPIVersion"), s.ClusterAPIVersion,
			[]v1alpha1.ClusterAPIVersion{v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2}))
	}
	if objects == nil && conditions == nil {
		return nil, errs
	}
	return &policy.Policy{Name: s.Name, Kind: s.Kind, ObjectSelector: objects, Conditions: conditions}, errs
}
