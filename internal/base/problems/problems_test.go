// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestFewProblemsAreTheSame(t *testing.T) {
	if err := Join(nil); err != nil || Bound(nil) != nil {
		t.Errorf("no problems are %v", err)
	}
	errs := field.ErrorList{
		field.Invalid(field.NewPath("spec", "a"), 3, "must be 4"), field.Required(field.NewPath("spec", "b"), ""),
		field.Invalid(field.NewPath("spec", "c"), field.OmitValueType{}, "must be text"),
	}
	if got, want := Join(errs).Error(), errs.ToAggregate().Error(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	var errs field.ErrorList
	for i := range 20_000 {
		errs = append(errs, field.Invalid(field.NewPath("labels").Key(strconv.Itoa(i)), "-", "must be a label"))
	}
	alloctest.Bound{Base: 1 << 20}.Check(t, 0, func() {
		got := Join(errs).Error()
		if !strings.Contains(got, "labels[0]") || !strings.HasSuffix(got, "(and 19980 more problems)]") {
			t.Errorf("got %s", got)
		}
	})
	if errs[limits.Problems-1].Detail != "must be a label" {
		t.Error("the given problem has changed")
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, e := range map[string]*field.Error{
		"value":  field.Invalid(field.NewPath("a"), long, "short"),
		"list":   field.Invalid(field.NewPath("a"), []string{long}, "short"),
		"detail": field.Invalid(field.NewPath("a"), 1, long),
		"field":  field.Invalid(field.NewPath(long), 1, "short"),
	} {
		if got := Join(field.ErrorList{e}).Error(); len(got) > 2*limits.ProblemBytes {
			t.Errorf("%s: the text has %d bytes", name, len(got))
		}
	}
}
