// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// Lint returns what is wrong in manifests, each of which is a file or a directory, in the order of places: what a
// gateway of a directory with all of them would say, and how the policies, the rules and the chains fit together and
// with the handlers in the status of ExtensionConfigs. The error is that of a path that cannot be read.
func Lint(paths []string, hooks *catalog.Catalog) ([]Problem, error) {
	words, err := NewDecoder(hooks, AllRules(nil, nil, time.Now), func(c *allkinds.Config) { // they may be for a cluster
		c.Jobs = hookjob.NewCompiler(hooks, c.Conditions, c.Types, nil, nil)
	})
	if err != nil {
		return nil, err
	}
	reader := &files.Reader{}
	var all []File
	whole := false
	for _, path := range paths {
		if CheckDir(reader, path) != nil {
			f, err := ReadFile(reader, path)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
			continue
		}
		found, err := ReadFiles(reader, path)
		if err != nil {
			return nil, err
		}
		all, whole = append(all, found...), true
	}
	defined, problems := (&Inventory{}).Next(all, words)
	problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.notOfLint })
	documents := documentsOf(all)
	policies := In[extensionpolicy.Policy](defined, extensionpolicy.Kind)
	problems = append(problems, defined.lintExtensions(documents, hooks)...)
	problems = append(problems, defined.lintPolicies(policies, documents, words)...)
	problems = append(problems, defined.lintRules(documents)...)
	if whole { // the targets of policies in single files may be in others
		problems = append(problems, defined.lintTargets(policies, documents)...)
	}
	problems = append(problems, defined.lintChains(policies, documents, hooks)...)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return problems, nil
}

// documentsOf returns the documents of manifests by their places.
func documentsOf(manifests []File) map[Place]*document {
	documents := map[Place]*document{}
	for i := range manifests {
		of, _ := manifests[i].documents()
		for j := range of {
			documents[of[j].Place] = &of[j]
		}
	}
	return documents
}

// lintTargets returns a warning for each policy whose target is in none of the documents.
func (v *Inventory) lintTargets(policies []extensionpolicy.Policy, documents map[Place]*document) []Problem {
	exists := map[string]bool{}
	for _, d := range documents {
		if d.kind == extensionconfig.Kind || d.kind == hookrule.Kind || d.kind == hookjob.Kind {
			exists[d.name] = true
		}
	}
	var problems []Problem
	for i := range policies {
		p := &policies[i]
		if exists[p.Target.ExtensionConfig] {
			continue
		}
		d := documents[v.Of(extensionpolicy.Kind)[p.Name].Place]
		d.name = p.Name
		problem := d.problemAt("spec.targetRef.name", fmt.Errorf("spec.targetRef.name: %w", p.Target.Missing()))
		problem.Warning = true
		problems = append(problems, problem)
	}
	return problems
}

// lintRules returns a warning for each expression of a rule that says something else than it seems to.
func (v *Inventory) lintRules(documents map[Place]*document) []Problem {
	var problems []Problem
	for name, o := range v.Of(hookrule.Kind) {
		reg, _ := o.Compiled.(registry.Registration)
		rule, ok := reg.InProcess.(*hookrule.Rule)
		if !ok {
			continue
		}
		d := documents[o.Place]
		d.name = name
		for _, p := range d.fieldProblems(rule.Doubts()) {
			p.Warning = true
			problems = append(problems, p)
		}
	}
	return problems
}

// lintPolicies returns the conflicts of policies, and the mistakes in their conditions.
func (v *Inventory) lintPolicies(
	policies []extensionpolicy.Policy, documents map[Place]*document, words *Decoder,
) []Problem {
	_, verdicts := extensionpolicy.Resolve(policies, func(extensionpolicy.Target) error { return nil })
	var problems []Problem
	for i := range policies {
		p, at := &policies[i], v.Of(extensionpolicy.Kind)[policies[i].Name].Place
		report := func(verdict kinds.Verdict) {
			if !verdict.Accepted() {
				problems = append(problems, Problem{
					Place: at, Object: fmt.Sprintf("%s %q", extensionpolicy.Kind, p.Name), Err: errors.New(verdict.Message),
				})
			}
		}
		report(verdicts[p.Name])
		handlers := map[string]hook.GroupHook{}
		if rule, ok := v.Of(hookrule.Kind)[p.Target.ExtensionConfig].Compiled.(registry.Registration); ok {
			for _, h := range rule.Handlers {
				handlers[h.Name] = h.Hook.GroupHook()
			}
			report(p.JudgeLocal(&rule))
		}
		if x := v.Of(extensionconfig.Kind)[p.Target.ExtensionConfig].Extension; x != nil {
			for _, h := range x.LastKnown {
				handlers[h.Name] = h.Hook.GroupHook()
			}
			if len(handlers) > 0 && verdicts[p.Name].Accepted() {
				report(p.JudgeLifts(verdicts[p.Name], handlers))
			}
		}
		d := documents[at]
		d.name = p.Name
		problems = append(problems, d.fieldProblems(p.CheckConditions(words.Types(), handlers))...)
	}
	return problems
}
