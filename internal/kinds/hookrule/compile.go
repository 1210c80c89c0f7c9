// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Compiler compiles HookRules. It is safe for concurrent use.
type Compiler struct {
	hooks *catalog.Catalog
	codec *codec.Codec
	cel   *policy.Compiler
	types *policy.Types
	now   func() time.Time

	source         Params // may be nil
	places         Places // may be nil
	withoutCluster bool
}

// NewCompiler returns a Compiler for the hooks of a catalog, whose types are types. now is the clock of the rules.
func NewCompiler(
	hooks *catalog.Catalog, cel *policy.Compiler, types *policy.Types, now func() time.Time,
) *Compiler {
	return &Compiler{hooks: hooks, codec: codec.New(hooks), cel: cel, types: types, now: now}
}

// compilation is one rule that is being compiled.
type compilation struct {
	*Compiler
	name   string
	hook   *catalog.Hook
	params []param
	errs   field.ErrorList
	doubts field.ErrorList
}

// Compile returns the registration of a rule, by the rules of its schema and those that a schema cannot say. It does
// not look at the status, and does not change o.
func (c *Compiler) Compile(o *v1alpha1.HookRule) (registry.Registration, field.ErrorList) {
	in := &compilation{Compiler: c, name: o.Name, errs: kinds.ValidateName(o.Name)}
	path := field.NewPath("spec")
	spec := o.Spec.DeepCopy()
	answers := in.category(spec, path)
	if in.hook == nil {
		return registry.Registration{Name: o.Name}, in.errs
	}
	common := kinds.InProcess{
		Kind: Kind, Name: o.Name, Handler: HandlerName, NamespaceSelector: spec.NamespaceSelector,
		ObjectSelector: spec.ObjectSelector, MatchConditions: spec.MatchConditions, ClusterAPIVersion: spec.ClusterAPIVersion,
	}
	reg, errs := common.Compile(in.hook, path, in.cel, in.types)
	in.errs = append(in.errs, errs...)
	in.forbidOthers(spec, path, answers.fields)
	reg.Audit = in.audits(spec, path, answers)
	in.params = in.compileParams(spec, path.Child("params"))
	rule := &Rule{name: o.Name, hook: in.hook, codec: c.codec, now: c.now, params: in.params, source: c.source}
	rule.answer = answers.compile(in, spec, path)
	rule.places = c.places
	rule.concurrency = in.compileConcurrency(spec.Concurrency, path.Child("concurrency"))
	rule.doubts = in.doubts
	reg.InProcess = rule
	if freeing, ok := in.freeingHandler(); ok && rule.concurrency != nil {
		reg.Handlers = append(reg.Handlers, freeing)
		rule.after, _ = in.hooks.Lookup(freeing.Hook)
	}
	return reg, in.errs
}

// audits reports whether a rule only audits, which not all may.
func (in *compilation) audits(spec *v1alpha1.HookRuleSpec, path *field.Path, of category) bool {
	at := path.Child("action")
	switch spec.Action {
	case "", v1alpha1.HookRuleEnforce:
		return false
	case v1alpha1.HookRuleAudit:
		if !of.audits {
			in.errs = append(in.errs, field.Forbidden(at, "rules of "+in.hook.Hook+" cannot have this action"))
		}
		if spec.Concurrency != nil {
			in.errs = append(in.errs, field.Forbidden(at, "a rule with concurrency gives out places, "+
				"so it cannot have this action"))
		}
		return true
	}
	in.errs = append(in.errs, field.NotSupported(at, spec.Action,
		[]v1alpha1.HookRuleAction{v1alpha1.HookRuleEnforce, v1alpha1.HookRuleAudit}))
	return false
}

// category is what rules of some hooks may say.
type category struct {
	hooks func(h *catalog.Hook) bool
	// fields are the names of the fields of spec that are for these hooks.
	fields  []string
	compile func(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer
	// audits says that rules may have action: Audit.
	audits bool
}

// categories are all of them.
func categories() []category {
	return []category{
		lifecycle(),
		inPlace(),
		patches(),
		variables(),
		validations(),
	}
}

// category finds the hook of a rule, and what the rule may say. It notes a mistake if there is none.
func (in *compilation) category(spec *v1alpha1.HookRuleSpec, path *field.Path) category {
	var known []string
	for _, h := range in.hooks.Hubs() {
		for _, of := range categories() {
			if !of.hooks(h) {
				continue
			}
			if known = append(known, h.Hook); h.Hook == spec.Hook {
				in.hook = h
				return of
			}
		}
	}
	at := path.Child("hook")
	if spec.Hook == "UpdateMachine" {
		in.errs = append(in.errs, field.Invalid(at, spec.Hook,
			"a rule says what may change in place (CanUpdateMachine, CanUpdateMachineSet), but cannot make the "+
				"change: a HookJob can"))
	} else {
		in.errs = append(in.errs, kinds.NoHook(at, spec.Hook, "a rule can answer", known))
	}
	return category{}
}

// forbidOthers notes the fields that rules of the hook cannot have.
func (in *compilation) forbidOthers(spec *v1alpha1.HookRuleSpec, path *field.Path, allowed []string) {
	may := map[string]bool{}
	for _, name := range allowed {
		may[name] = true
	}
	value := reflect.ValueOf(*spec)
	for _, of := range categories() {
		for _, name := range of.fields {
			set := value.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
			if !may[name] && !set.IsZero() {
				in.errs = append(in.errs, field.Forbidden(path.Child(name),
					fmt.Sprintf("rules of %s cannot have %s", in.hook.Hook, strings.Join(of.fields, ", "))))
			}
		}
	}
}

// expression compiles an expression, or notes its mistakes and returns nil.
func (in *compilation) expression(
	source string, kind policy.Kind, path *field.Path, variables ...string,
) *policy.Expression {
	if source == "" {
		in.errs = append(in.errs, field.Required(path, "must be a CEL expression"))
		return nil
	}
	e, err := in.cel.Expression(in.types, in.hook.GroupHook(), path.String(), source, kind, in.variables(variables)...)
	if err != nil {
		detail := err.Error()
		if kind == policy.String && isProse(source) {
			quoted := strings.ReplaceAll(strconv.Quote(text.Cut(source, limits.QuotedBytes)), "'", "''")
			detail += fmt.Sprintf("; a literal text needs quotes inside the value: '%s'", quoted)
		}
		in.errs = append(in.errs, field.Invalid(path, field.OmitValueType{}, detail))
		return nil
	}
	return e
}

// isProse reports whether a source that is no expression looks like a text whose quotes YAML has taken: it begins with
// a word, and has neither a literal nor an operator that makes one text of several.
func isProse(source string) bool {
	word, _, _ := strings.Cut(source, " ")
	return !strings.ContainsAny(word, `.("'[`) && !strings.ContainsAny(source, `"+`)
}
