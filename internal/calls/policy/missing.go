// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// ifMissing reports whether e has the value if a member is empty and x is missing, because a part of e compares the
// member with x.orValue(""). The part must decide alone: one that another part may guard does not count.
func ifMissing(e celast.Expr, value bool) bool {
	if e.Kind() != celast.CallKind {
		return false
	}
	args := e.AsCall().Args()
	deciding := map[bool]string{true: operators.LogicalOr, false: operators.LogicalAnd}[value]
	comparing := map[bool]string{true: operators.Equals, false: operators.NotEquals}[value]
	switch e.AsCall().FunctionName() {
	case operators.LogicalNot:
		return ifMissing(args[0], !value)
	case deciding:
		return slices.ContainsFunc(args, func(part celast.Expr) bool { return ifMissing(part, value) })
	case comparing:
		a, b := args[0], args[1]
		return isOrEmpty(a) && (isMember(b) || isOrEmpty(b)) || isMember(a) && isOrEmpty(b)
	}
	return false
}

// isOrEmpty reports whether e is x.orValue("").
func isOrEmpty(e celast.Expr) bool {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "orValue" {
		return false
	}
	args := e.AsCall().Args()
	return len(args) == 1 && args[0].Kind() == celast.LiteralKind && args[0].AsLiteral() == types.String("")
}

// isMember reports whether e is x.y or x[y].
func isMember(e celast.Expr) bool {
	return e.Kind() == celast.SelectKind ||
		e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Index
}
