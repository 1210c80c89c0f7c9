// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// newRuleCompiler returns a compiler of HookRules for all hooks.
func newRuleCompiler(t testing.TB) *hookrule.Compiler {
	t.Helper()
	cel, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(allHooks)
	if err != nil {
		t.Fatal(err)
	}
	return hookrule.NewCompiler(allHooks, cel, types, time.Now)
}

// compiledRule returns the registration of a HookRule that is valid.
func compiledRule(t testing.TB, rules *hookrule.Compiler, o *v1alpha1.HookRule) registry.Registration {
	t.Helper()
	reg, errs := rules.Compile(o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return reg
}
