// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// A rule is a step of a chain like any other: what it does not allow is left to the next step, or blocked.
func TestChainWithARule(t *testing.T) {
	f := newChain(t, "CanUpdateMachine", canUpdate(`{"spec":{"b":1}}`))
	rule := &v1alpha1.HookRule{Spec: v1alpha1.HookRuleSpec{
		Hook:  "CanUpdateMachine",
		Allow: []v1alpha1.HookRuleAllow{{Path: "/machine/spec/files", AffectsAvailability: new(false)}},
	}}
	rule.Name = "files"
	reg := compiledRule(t, newRuleCompiler(t), rule)
	f.chain.Block = true
	f.chain.Steps = append([]registry.ChainStep{{Handler: "rule.files"}}, f.chain.Steps...)
	f.build(t)
	if errs := f.registry.SetLocal(hookrule.Kind, []registry.Registration{reg}); errs[0] != nil {
		t.Fatal(errs)
	}
	local, steps := extension.NewProtocols(extension.Config{}), f.config.Transport
	f.Dispatcher = newDispatcher(f.registry, fixedNamespaces{}, callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
		transport := steps
		if c.Handler.Registration.InProcess != nil {
			transport = local.Call
		}
		result, err := transport(ctx, c)
		return result.Response, err
	}))
	f.wants(t, "the rule covers all", updateRequest(`{}`, `{"files":[1]}`), `status: RESPONSE_STATUS_SUCCESS affects_availability: false `+
		`machine_patch {patch_type: PATCH_TYPE_JSON_PATCH patch: "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{\"files\":[1]}}]"}`, "")
	f.wants(t, "the next step covers the rest, and may affect availability", updateRequest(`{}`, `{"files":[1],"b":1}`), `status: RESPONSE_STATUS_SUCCESS `+
		`machine_patch {patch_type: PATCH_TYPE_JSON_PATCH patch: "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{\"b\":1,\"files\":[1]}}]"}`, "a.e")
	f.wants(t, "no step covers it", updateRequest(`{}`, `{"files":[1],"b":1,"x":1}`), `status: RESPONSE_STATUS_FAILURE message: "onPartialCoverage of `+
		`HandlerChain \"chain\" is Block, and no step covers /machine/spec/x"`, "a.e")
}
