// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems bounds the lists of problems that objects have before they become text. Its functions are pure.
//
// Kubernetes makes the text of a list in time and memory that grow with the square of its length: 8,000 wrong labels of
// one object take it half a minute and 95 GB.
package problems

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Bound returns the first of the problems, with long texts cut, and says in the last one how many it left out.
func Bound(errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 {
		return nil
	}
	bounded := make(field.ErrorList, min(len(errs), limits.Problems))
	for i := range bounded {
		e := *errs[i]
		e.Field, e.Detail = text.Cut(e.Field, limits.ProblemBytes), text.Cut(e.Detail, limits.ProblemBytes)
		if shown := fmt.Sprint(e.BadValue); len(shown) > limits.ProblemBytes {
			e.BadValue = text.Cut(shown, limits.ProblemBytes)
		}
		bounded[i] = &e
	}
	if more := len(errs) - len(bounded); more > 0 {
		last := bounded[len(bounded)-1]
		last.Detail = fmt.Sprintf("%s (and %d more problems)", last.Detail, more)
	}
	return bounded
}

// Join returns the problems as one error, bounded; nil if there are none.
func Join(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return Bound(errs).ToAggregate()
}
