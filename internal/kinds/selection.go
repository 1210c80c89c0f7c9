// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// maxConditionName is the length of the longest name of a condition, as the schema of ExtensionPolicy has it.
const maxConditionName = 63

var conditionName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// ConvertSelector returns a selector, nil if there is none, or its mistakes.
func ConvertSelector(s *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if s == nil {
		return nil, nil
	}
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, metav1.FormatLabelSelector(s), err.Error()))
	}
	return selector, errs
}

// CompileConditions returns the conditions of a policy or a rule, or their mistakes.
func CompileConditions(
	list []v1alpha1.MatchCondition, path *field.Path, c *policy.Compiler,
) (*policy.Conditions, field.ErrorList) {
	if len(list) > limits.MatchConditions {
		return nil, field.ErrorList{field.TooMany(path, len(list), limits.MatchConditions)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	conditions := make([]policy.Condition, len(list))
	for i, m := range list {
		at := path.Index(i)
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "must say which condition it is"))
		case len(m.Name) > maxConditionName:
			errs = append(errs, field.TooLong(at.Child("name"), "", maxConditionName))
		case !conditionName.MatchString(m.Name):
			errs = append(errs, field.Invalid(at.Child("name"), m.Name,
				"must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit"))
		case names[m.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		}
		names[m.Name] = true
		if m.Expression == "" {
			errs = append(errs, field.Required(at.Child("expression"), "must be a CEL expression"))
		}
		conditions[i] = policy.Condition{Name: m.Name, Expression: m.Expression}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	compiled, compileErrs := c.Compile(conditions)
	for _, err := range compileErrs {
		errs = append(errs, field.Invalid(path.Index(err.Index).Child("expression"),
			field.OmitValueType{}, err.Message))
	}
	return compiled, errs
}

// ValidateName checks a name that must be a DNS-1123 label: for an ExtensionConfig, because handlers are registered
// as <handler>.<ExtensionConfig>; for a Namespace, because Kubernetes wants it.
func ValidateName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if name == "" {
		return field.ErrorList{field.Required(path, "must be a DNS-1123 label")}
	}
	if err := registry.CheckName(name); err != nil {
		return field.ErrorList{field.Invalid(path, name, err.Error())}
	}
	return nil
}
