// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

func compiler(t *testing.T) *policy.Compiler {
	t.Helper()
	c, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func policyWith(change func(*v1alpha1.ExtensionPolicy)) *v1alpha1.ExtensionPolicy {
	p := &v1alpha1.ExtensionPolicy{}
	p.Name, p.Spec.TargetRef.Name, p.Spec.Protocol = "p", "acme", v1alpha1.ProtocolREST
	change(p)
	return p
}

func conditions(n int, name func(i int) string) []v1alpha1.MatchCondition {
	list := make([]v1alpha1.MatchCondition, n)
	for i := range list {
		list[i] = v1alpha1.MatchCondition{Name: name(i), Expression: "true"}
	}
	return list
}

func TestCompileAtTheLimits(t *testing.T) {
	c := compiler(t)
	seconds := func(n int32) func(*v1alpha1.ExtensionPolicy) {
		return func(p *v1alpha1.ExtensionPolicy) { p.Spec.TimeoutSeconds = &n }
	}
	conditioned := func(list ...v1alpha1.MatchCondition) func(*v1alpha1.ExtensionPolicy) {
		return func(p *v1alpha1.ExtensionPolicy) { p.Spec.MatchConditions = list }
	}
	hooked := func(names ...string) func(*v1alpha1.ExtensionPolicy) {
		return func(p *v1alpha1.ExtensionPolicy) { p.Spec.Hooks = names }
	}
	hookedHandler := func(p *v1alpha1.ExtensionPolicy) {
		p.Spec.Protocol, p.Spec.Hooks, p.Spec.TargetRef.Handler = "", []string{"GeneratePatches"}, "v"
	}
	released := func(release string, version v1alpha1.ClusterAPIVersion) func(*v1alpha1.ExtensionPolicy) {
		return func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.ClusterAPIRelease, p.Spec.ClusterAPIVersion = release, version
		}
	}
	numbered := func(i int) string { return fmt.Sprintf("c%d", i) }
	named := func(name string) func(*v1alpha1.ExtensionPolicy) {
		return conditioned(v1alpha1.MatchCondition{Name: name, Expression: "true"})
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExtensionPolicy)
		want   string // the error; empty for none
	}{
		"Timeout1":        {seconds(1), ""},
		"Timeout30":       {seconds(30), ""},
		"Timeout0":        {seconds(0), "spec.timeoutSeconds: Invalid value: 0: must be between 1 and 30"},
		"Timeout31":       {seconds(31), "spec.timeoutSeconds: Invalid value: 31: must be between 1 and 30"},
		"Conditions64":    {conditioned(conditions(64, numbered)...), ""},
		"Conditions65":    {conditioned(conditions(65, numbered)...), "spec.matchConditions: Too many: 65: must have at most 64 items"},
		"Condition63":     {named(pad("", 63)), ""},
		"Condition64":     {named(pad("", 64)), "spec.matchConditions[0].name: Too long: may not be more than 63 bytes"},
		"ConditionDash":   {named("a-"), `spec.matchConditions[0].name: Invalid value: "a-": must consist of letters`},
		"ConditionNoName": {named(""), "spec.matchConditions[0].name: Required value: must say which condition it is"},
		"ConditionTwice":  {conditioned(conditions(2, func(int) string { return "a" })...), `spec.matchConditions[1].name: Duplicate value: "a"`},
		"ConditionEmpty":  {conditioned(v1alpha1.MatchCondition{Name: "a"}), "spec.matchConditions[0].expression: Required value: must be a CEL expression"},
		"ConditionText":   {conditioned(v1alpha1.MatchCondition{Name: "a", Expression: "'x'"}), "spec.matchConditions[0].expression: Invalid value: "},
		"NoName":          {func(p *v1alpha1.ExtensionPolicy) { p.Name = "" }, "metadata.name: Required value: must be a DNS-1123 subdomain"},
		"Subdomain":       {func(p *v1alpha1.ExtensionPolicy) { p.Name = "a.b" }, ""},
		"UpperCase":       {func(p *v1alpha1.ExtensionPolicy) { p.Name = "A" }, `metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain`},
		"NoTarget":        {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Name = "" }, "spec.targetRef.name: Required value: must be the name of an ExtensionConfig"},
		"Target63":        {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Name = pad("", 63) }, ""},
		"Target64":        {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Name = pad("", 64) }, "must have at most 63 characters, has 64"},
		"FullHandler": {func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.Protocol, p.Spec.Order, p.Spec.TargetRef.Handler = "", new(int32), "v.acme"
		}, "; give the name from Discovery, without the name of the ExtensionConfig"},
		"Protocol":        {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Protocol = "SOAP" }, `spec.protocol: Unsupported value: "SOAP": supported values: "GRPC", "REST"`},
		"HandlerProtocol": {func(p *v1alpha1.ExtensionPolicy) { p.Spec.TargetRef.Handler = "v" }, "spec.protocol: Forbidden: protocol is for all handlers of an extension: leave targetRef.handler out"},
		"FailurePolicy":   {func(p *v1alpha1.ExtensionPolicy) { p.Spec.FailurePolicy = "Maybe" }, `spec.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"`},
		"Version":         {func(p *v1alpha1.ExtensionPolicy) { p.Spec.ClusterAPIVersion = "v1" }, `spec.clusterAPIVersion: Unsupported value: "v1": supported values: "v1beta1", "v1beta2"`},
		"Release":         {released("v1.12", ""), ""},
		"ReleaseBoth":     {released("v1.12", "v1beta2"), ""},
		"ReleaseUnknown":  {released("v1.10", ""), `spec.clusterAPIRelease: Unsupported value: "v1.10": supported values: "v1.11", "v1.12", "v1.13", "v1.14"`},
		"ReleaseAhead":    {released("v1.15", ""), `spec.clusterAPIRelease: Unsupported value: "v1.15"`},
		"ReleaseOld":      {released("v1.11", "v1beta2"), `spec.clusterAPIRelease: Invalid value: "v1.11": contradicts clusterAPIVersion: Cluster API v1.11 never sends objects of v1beta2`},
		"ReleaseNew":      {released("v1.13", "v1beta1"), `spec.clusterAPIRelease: Invalid value: "v1.13": contradicts clusterAPIVersion: Cluster API v1.13 never sends objects of v1beta1`},
		"Selector": {func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, `spec.objectSelector.matchLabels: Invalid value: "a b": `},
		"Hooks":          {hooked("BeforeClusterDelete", "GeneratePatches"), ""},
		"HookMisspelt":   {hooked("GeneratePatch"), `spec.hooks[0]: Invalid value: "GeneratePatch": no hook has this name: did you mean "GeneratePatches"?`},
		"HookCase":       {hooked("generatepatches"), `spec.hooks[0]: Invalid value: "generatepatches": no hook has this name: did you mean "GeneratePatches"?`},
		"HookUnknown":    {hooked("x"), `spec.hooks[0]: Unsupported value: "x": supported values: "AfterClusterUpgrade"`},
		"HookDiscovery":  {hooked("Discovery"), `spec.hooks[0]: Unsupported value: "Discovery"`},
		"HookTwice":      {hooked("GeneratePatches", "GeneratePatches"), `spec.hooks[1]: Duplicate value: "GeneratePatches"`},
		"Hooks65":        {hooked(make([]string, 65)...), "spec.hooks: Too many: 65: must have at most 64 items"},
		"HookOfHandler":  {hookedHandler, "spec.hooks: Forbidden: hooks are for all handlers of an extension: leave targetRef.handler out"},
		"OnUndiscovered": {func(p *v1alpha1.ExtensionPolicy) { p.Spec.OnUndiscovered = "Maybe" }, `spec.onUndiscovered: Unsupported value: "Maybe": supported values: "Fail", "Ignore"`},
		"OfferAs":        {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Protocol, p.Spec.OfferAs = "", "Original" }, ""},
		"OfferAsUnknown": {func(p *v1alpha1.ExtensionPolicy) { p.Spec.OfferAs = "Short" }, `spec.offerAs: Unsupported value: "Short": supported values: "Original", "Qualified"`},
		"Messages":       {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Messages = "Steady" }, ""},
		"MessagesOther":  {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Messages = "Same" }, `spec.messages: Unsupported value: "Same": supported values: "Steady", "Verbatim"`},
		"OfferAsHandler": {func(p *v1alpha1.ExtensionPolicy) {
			p.Spec.Protocol, p.Spec.OfferAs, p.Spec.TargetRef.Handler = "", "Original", "v"
		}, "spec.offerAs: Forbidden: offerAs is for all handlers of an extension: leave targetRef.handler out"},
		"Nothing": {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Protocol = "" }, "spec: Required value: must set at least one of protocol, "},
		"Order0":  {func(p *v1alpha1.ExtensionPolicy) { p.Spec.Protocol, p.Spec.Order = "", new(int32) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := policyWith(tc.change)
			before := p.DeepCopy()
			_, errs := Compile(p, c, catalog.New())
			if tc.want == "" && len(errs) > 0 || tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)) {
				t.Errorf("got %v, want %q", errs, tc.want)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("Compile changed its argument (-before +after):\n%s", diff)
			}
		})
	}
}

func TestCompileKeepsNothingOfItsArgument(t *testing.T) {
	order := int32(3)
	p := policyWith(func(p *v1alpha1.ExtensionPolicy) { p.Spec.Order = &order })
	converted, errs := Compile(p, compiler(t), catalog.New())
	if order = 4; len(errs) > 0 || *converted.Compiled.Order != 3 {
		t.Errorf("a change of the object changed its policy: order %d, %v", *converted.Compiled.Order, errs)
	}
}

// Only the policy in effect for a whole extension says what it speaks.
func TestProtocols(t *testing.T) {
	of := func(name, config, handler string, age int64, protocol registry.Protocol) Policy {
		p := policyFor(name, config, handler, time.Unix(age, 0))
		p.Protocol = protocol
		return p
	}
	policies := []Policy{
		of("young", "acme", "", 2, registry.GRPC), of("old", "acme", "", 1, registry.REST),
		of("rest", "other", "", 2, registry.REST), of("grpc", "other", "", 1, registry.GRPC), of("own", "third", "v", 1, registry.GRPC),
	}
	before := slices.Clone(policies)
	resolved, _ := Resolve(policies, func(Target) error { return nil })
	if diff := cmp.Diff(map[string]registry.Protocol{"other": registry.GRPC}, Protocols(policies, resolved)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.EqualFunc(before, policies, func(a, b Policy) bool { return a.Name == b.Name }) {
		t.Error("Resolve changed the order of its argument")
	}
}

func pad(s string, n int) string { return s + strings.Repeat("a", n-len(s)) }
