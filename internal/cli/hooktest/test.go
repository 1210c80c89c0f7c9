// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// The kinds of Tests.
const (
	ChainKind = handlerchain.TestKind
	RuleKind  = hookrule.TestKind
)

// Test is a HandlerChainTest or a HookRuleTest of hookgate.dev/v1alpha1. It is a file only: no API server knows it.
type Test struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec Spec `json:"spec"`

	at func(path string) manifest.Place
}

// Spec says what is called, and the cases.
type Spec struct {
	// Chain is the name of the HandlerChain, and Hook its hook, in a HandlerChainTest.
	Chain string `json:"chain,omitempty"`
	Hook  string `json:"hook,omitempty"`
	// Rule is the name of the HookRule, in a HookRuleTest.
	Rule  string `json:"rule,omitempty"`
	Cases []Case `json:"cases"`
}

// Case is a request, and what is wanted of the answer.
type Case struct {
	Name  string `json:"name"`
	Given Given  `json:"given"`
	Want  Want   `json:"want"`
}

// Given is what a handler is asked, and what it can know.
type Given struct {
	// Request is the request. What it lacks is filled in; see Complete. RequestFile has a whole one instead, with a path
	// that is relative to the file of the test. Without either, the request is the one that is filled in.
	Request     json.RawMessage `json:"request,omitempty"`
	RequestFile string          `json:"requestFile,omitempty"`
	// Now is the time of the call, for a rule, in RFC 3339. Without it, it is the beginning of 2026.
	Now string `json:"now,omitempty"`
	// Params are the objects that the params of a rule read, as they are in the cluster.
	Params []json.RawMessage `json:"params,omitempty"`
	// Places are those of other Clusters, for a rule with concurrency.
	Places Places `json:"places,omitempty"`
	// NamespaceLabels are the labels of the namespace of the request, for a rule.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
}

// Time returns the time of the call.
func (g *Given) Time() (time.Time, error) {
	if g.Now == "" {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), nil
	}
	at, err := time.Parse(time.RFC3339, g.Now)
	if err != nil {
		return at, fmt.Errorf("want a time such as 2026-07-04T01:00:00Z, got %q", text.Cut(g.Now, limits.QuotedBytes))
	}
	return at, nil
}

// Want is what is wanted of the answer.
type Want struct {
	// Status is Success if it is empty. Message and RetryAfterSeconds are wanted to be empty and 0 if they are.
	Status            string `json:"status,omitempty"`
	Message           string `json:"message,omitempty"`
	RetryAfterSeconds int32  `json:"retryAfterSeconds,omitempty"`
	// Response has further members of the answer, such as variables, which have to be equal. Others are not compared.
	Response map[string]json.RawMessage `json:"response,omitempty"`
	// Objects are those of the request with the patches of the answer applied, as Cluster API applies them. Others are
	// not compared.
	Objects []Object `json:"objects,omitempty"`
	// Error is the text of the error of a call that has no answer.
	Error string `json:"error,omitempty"`
	// Excluded means that the selectors or the conditions of a rule exclude the request.
	Excluded bool `json:"excluded,omitempty"`
}

// answers reports whether something is wanted of an answer.
func (w *Want) answers() bool {
	return w.Status != "" || w.Message != "" || w.RetryAfterSeconds != 0 || len(w.Response) > 0 || len(w.Objects) > 0
}

// Object is a wanted object: of an item of GeneratePatches by its uid, and otherwise by the name of the member, such as
// machine.
type Object struct {
	UID    string          `json:"uid,omitempty"`
	Name   string          `json:"name,omitempty"`
	Object json.RawMessage `json:"object"`
}

// ParseChainTests returns the HandlerChainTests in a file, or what is wrong with it. Objects of other kinds are
// mistakes unless they are passed over.
func ParseChainTests(f *manifest.File, hooks *catalog.Catalog, passOver bool) ([]*Test, error) {
	return parse(f, ChainKind, passOver, func(t *Test) []mistake {
		h, ok := hooks.ByName(t.Spec.Hook)
		var mistakes []mistake
		switch {
		case t.Spec.Hook == "":
			mistakes = append(mistakes, mistake{"spec.hook", "required"})
		case !ok || h.Singleton():
			mistakes = append(mistakes, mistake{"spec.hook", fmt.Sprintf("no hook %q has chains", t.Spec.Hook)})
		}
		if t.Spec.Chain == "" {
			mistakes = append(mistakes, mistake{"spec.chain", "required"})
		}
		for i := range t.Spec.Cases {
			given, at := &t.Spec.Cases[i].Given, fmt.Sprintf("spec.cases[%d]", i)
			if given.Now != "" || given.NamespaceLabels != nil || given.Params != nil || given.Places != nil ||
				t.Spec.Cases[i].Want.Excluded {
				mistakes = append(mistakes, mistake{at, "now, params, places, namespaceLabels and excluded are for rules"})
			}
		}
		if t.Spec.Rule != "" {
			mistakes = append(mistakes, mistake{"spec.rule", "a HandlerChainTest must have a chain"})
		}
		return mistakes
	})
}

// ParseRuleTests returns the HookRuleTests in a file, which may have objects of other kinds, too, or what is wrong with
// it.
func ParseRuleTests(f *manifest.File) ([]*Test, error) {
	return parse(f, RuleKind, true, func(t *Test) []mistake {
		var mistakes []mistake
		if t.Spec.Rule == "" {
			mistakes = append(mistakes, mistake{"spec.rule", "required"})
		}
		if t.Spec.Chain != "" || t.Spec.Hook != "" {
			mistakes = append(mistakes, mistake{"spec", "a HookRuleTest must have a rule, and neither a chain " +
				"nor a hook"})
		}
		return mistakes
	})
}

// mistake is one in a field of a test.
type mistake struct{ path, text string }

func parse(f *manifest.File, kind string, passOver bool, check func(*Test) []mistake) ([]*Test, error) {
	found, problems := manifest.DecodeOwn[Test](f, kind, passOver)
	var errs []error
	for i := range problems {
		errs = append(errs, &problems[i])
	}
	tests := make([]*Test, 0, len(found))
	for i := range found {
		t := found[i].Object
		t.at = found[i].At
		for _, m := range append(check(t), t.check()...) {
			errs = append(errs, fmt.Errorf("%s: %s %q: %s: %s", t.at(m.path), kind, t.Name, m.path, m.text))
		}
		tests = append(tests, t)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return tests, nil
}

// Place returns the place of a field.
func (t *Test) Place(path string) manifest.Place { return t.at(path) }

// check returns what is wrong with the cases.
func (t *Test) check() []mistake {
	if len(t.Spec.Cases) == 0 {
		return []mistake{{"spec.cases", "want one at least"}}
	}
	var mistakes []mistake
	names := map[string]bool{}
	for i := range t.Spec.Cases {
		c := &t.Spec.Cases[i]
		wrong := func(field, format string, args ...any) {
			mistakes = append(mistakes, mistake{fmt.Sprintf("spec.cases[%d]%s", i, field), fmt.Sprintf(format, args...)})
		}
		switch {
		case c.Name == "":
			wrong(".name", "required")
		case names[c.Name]:
			wrong(".name", "%q is the name of another case, too", c.Name)
		}
		names[c.Name] = true
		if len(c.Given.Request) > 0 && c.Given.RequestFile != "" {
			wrong(".given", "want one of request and requestFile")
		}
		if _, err := c.Given.Time(); err != nil {
			wrong(".given.now", "%s", err)
		}
		for j := range c.Given.Places {
			if c.Given.Places[j].Name == "" {
				wrong(fmt.Sprintf(".given.places[%d].name", j), "required")
			}
		}
		w := &c.Want
		if !slices.Contains([]string{"", "Success", "Failure"}, w.Status) {
			wrong(".want.status", "want Success or Failure, got %q", w.Status)
		}
		if w.Error != "" && (w.Excluded || w.answers()) || w.Excluded && w.answers() {
			wrong(".want", "want one of an answer, an error, and excluded")
		}
		for j := range w.Objects {
			if o := &w.Objects[j]; (o.UID == "") == (o.Name == "") || len(o.Object) == 0 {
				wrong(fmt.Sprintf(".want.objects[%d]", j), "want one of uid and name, and the object")
			}
		}
	}
	return mistakes
}
