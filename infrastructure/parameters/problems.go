// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// problems returns the problems that are reported of all: sorted, each once, and not too many.
func problems(errs field.ErrorList) field.ErrorList {
	order := func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	}
	slices.SortFunc(errs, order)
	errs = slices.CompactFunc(errs, func(a, b *field.Error) bool { return order(a, b) == 0 })
	more := len(errs) - limits.ParameterProblems
	if more > 0 {
		errs = slices.Clone(errs[:limits.ParameterProblems])
	}
	for _, err := range errs {
		err.Field = redact.Bounded(err.Field, limits.ParameterProblemBytes)
		err.Detail = redact.Bounded(err.Detail, limits.ParameterProblemBytes)
	}
	if more > 0 {
		last := errs[len(errs)-1]
		last.Detail = strings.TrimPrefix(fmt.Sprintf("%s (and %d more problems)", last.Detail, more), " ")
	}
	return errs
}

// clean makes the text of a problem say each fact once. The API server's code repeats the path in it, and has the type
// of a value, or all of it, instead of the value.
func clean(err *field.Error) {
	_, detail, ok := strings.Cut(err.Detail, " in body ")
	if ok && strings.HasPrefix(err.Detail, err.Field) {
		err.Detail = detail
	}
	switch value := err.BadValue.(type) {
	case string:
		// A value that is wrong is shown, unless it is long. Where the type is wrong, the text has it.
		if err.Type == field.ErrorTypeTypeInvalid || len(value) > maxShown ||
			strings.HasSuffix(err.Detail, fmt.Sprintf(": %q", value)) {
			err.BadValue = field.OmitValueType{}
		}
	case bool, int64, float64, int:
	default:
		err.BadValue = field.OmitValueType{}
	}
}

// maxShown is the size of the longest value that a problem shows.
const maxShown = 64

// inDefinition is where a schema is in the definition that it is compiled as.
var inDefinition = regexp.MustCompile(`^spec\.validation\.openAPIV3Schema(\.properties\[` + member + `\])?`)

// schemaProblems returns the problems of a schema at its own paths.
func schemaProblems(root *field.Path, errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = inDefinition.ReplaceAllLiteralString(err.Field, root.String())
		clean(err)
	}
	return errs
}

// strictProblems returns the problems that a strict decoder reports.
func strictProblems(root *field.Path, errs []error) field.ErrorList {
	list := make(field.ErrorList, len(errs))
	for i, err := range errs {
		list[i] = &field.Error{
			Type: field.ErrorTypeForbidden, Field: root.String(), BadValue: field.OmitValueType{}, Detail: err.Error(),
		}
	}
	return list
}
