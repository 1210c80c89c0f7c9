// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds lists the kinds of objects that decide what calls get, and says what calls get while an object is not
// understood: an object with a mistake and without a valid version before it closes what its readable fields name, and
// no more. It reads such an object leniently, field by field. The packages below it compile objects that are valid, one
// for each kind.
//
// Its values are immutable, and its functions safe for concurrent use.
package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// The kinds.
const (
	ExtensionConfig  = "ExtensionConfig"
	ExtensionPolicy  = "ExtensionPolicy"
	ExtensionRollout = "ExtensionRollout"
	HandlerChain     = "HandlerChain"
	HookJob          = "HookJob"
	HookRule         = "HookRule"
)

// Kind is a kind of objects that decide what calls get.
type Kind struct {
	Name string
	// closes adds to a Closed what an object closes, by the fields of its spec that can be read.
	closes func(s spec, c *Closed)
}

// Table lists all kinds, by name. Those of hookgate.dev, and ExtensionConfig, are all in it.
func Table() []Kind {
	return []Kind{
		{ExtensionConfig, closesExtension},
		{ExtensionPolicy, closesTarget},
		{ExtensionRollout, closesMembers},
		{HandlerChain, closesSteps},
		{HookJob, closesHook},
		{HookRule, closesHook},
	}
}

// Is reports whether a kind is one of Table.
func Is(name string) bool {
	_, ok := find(func(k Kind) bool { return k.Name == name })
	return ok
}

// find returns the first kind of Table that is meant.
func find(isMeant func(Kind) bool) (Kind, bool) {
	table := Table()
	i := slices.IndexFunc(table, isMeant)
	if i < 0 {
		return Kind{}, false
	}
	return table[i], true
}

// Named returns the kind that someone who wrote name meant: of that name, in any letter case, or one edit away from it,
// which plurals are.
func Named(name string) (kind string, ok bool) {
	written := strings.ToLower(text.Cut(name, limits.QuotedBytes))
	meant, ok := find(func(k Kind) bool { return text.EditDistance(written, strings.ToLower(k.Name)) <= 1 })
	return meant.Name, ok
}

// Closed is what an object with a mistake closes.
type Closed struct {
	// Closure is what is closed. Of an ExtensionConfig it closes nothing: Extension says what calls wait for.
	registry.Closure
	// Registration and Chain stand for a HookJob or HookRule, and a HandlerChain, whose hook can be read, so that callers
	// who ask which handlers there are find them. They are nil for others.
	Registration *registry.Registration
	Chain        *registry.Chain
	// Extension is set for an ExtensionConfig.
	Extension *registry.Undiscovered
}

// Close returns what an object closes that has a mistake. content is the JSON of the object, of which any part may be
// wrong or missing; name is what identifies the object if it has no usable name.
func Close(kind, name string, content []byte, mistake string, hooks *catalog.Catalog) Closed {
	c := Closed{Closure: registry.Closure{
		Kind: kind, Name: text.Cut(name, limits.QuotedBytes), Mistake: text.Cut(mistake, limits.PolicyMessageBytes),
	}}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	_ = json.Unmarshal(content, &object) // what cannot be read is not there
	if of, ok := find(func(k Kind) bool { return k.Name == kind }); ok {
		of.closes(spec{object.Spec, hooks}, &c)
	} else {
		c.AllHooks = true
	}
	return c
}

// spec reads the spec of an object that may have any form.
type spec struct {
	members map[string]any
	hooks   *catalog.Catalog
}

// text returns the text at a path, or nothing.
func (s spec) text(path ...string) string {
	found, _ := s.at(path...).(string)
	return found
}

// at returns the value at a path, or nil.
func (s spec) at(path ...string) any {
	var at any = s.members
	for _, name := range path {
		in, _ := at.(map[string]any)
		at = in[name]
	}
	return at
}

// texts returns the texts anywhere in values, but the names of members, each once and in order. What has a name among
// skip is left out.
func texts(skip []string, values ...any) []string {
	var all []string
	var walk func(at any)
	walk = func(at any) {
		switch v := at.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, member := range v {
				if !slices.Contains(skip, name) {
					walk(member)
				}
			}
		}
	}
	for _, v := range values {
		walk(v)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namespaces returns the namespaceSelector, or nil, which matches all, if it cannot be read.
func (s spec) namespaces() labels.Selector {
	written, ok := s.members["namespaceSelector"]
	if !ok {
		return nil
	}
	content, err := json.Marshal(written)
	if err != nil {
		return nil
	}
	parsed := &metav1.LabelSelector{}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.DisallowUnknownFields()
	if decoder.Decode(parsed) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return nil
	}
	return selector
}

// hook returns the hook, or nil if it cannot be read.
func (s spec) hook() *catalog.Hook {
	name := s.text("hook")
	i := slices.IndexFunc(s.hooks.Hubs(), func(h *catalog.Hook) bool { return h.Hook == name && !h.Singleton() })
	if i < 0 {
		return nil
	}
	return s.hooks.Hubs()[i]
}

// unknownHook returns the hooks that an object may be for whose hook cannot be read: those that run before something
// happens, which nothing makes up for later, and those whose names are like what was written.
func (s spec) unknownHook() []hook.GroupHook {
	var all []hook.GroupHook
	var names []string
	for _, h := range s.hooks.Hubs() {
		names = append(names, h.Hook)
	}
	var meant []string
	for _, written := range texts(nil, s.at("hook")) {
		meant = append(meant, text.Nearest(text.Cut(written, limits.QuotedBytes), names))
	}
	for _, h := range s.hooks.Hubs() {
		if strings.HasPrefix(h.Hook, "Before") || slices.Contains(meant, h.Hook) {
			all = append(all, h.GroupHook())
		}
	}
	return all
}

// closesExtension makes calls wait for the handlers that an ExtensionConfig may have.
func closesExtension(s spec, c *Closed) {
	c.Extension = &registry.Undiscovered{
		Name: c.Name, NamespaceSelector: s.namespaces(), Mistake: c.Mistake, Default: hook.Fail,
	}
	if unusable(c.Name) {
		c.Extension.Name, c.Extension.Unreadable = "", c.String()
	}
}

// closesTarget closes the target of a policy, or every hook if that cannot be read.
func closesTarget(s spec, c *Closed) {
	names, handler := texts(nil, s.at("targetRef", "name")), s.text("targetRef", "handler")
	switch names = slices.DeleteFunc(names, unusable); {
	case len(names) == 0:
		c.AllHooks = true
	case len(names) == 1 && !unusable(handler):
		c.Handlers = []string{handler + "." + names[0]}
	default:
		c.Extensions = names
	}
}

// unusable reports whether a text is no name of a handler or of an object that has some.
func unusable(name string) bool { return registry.CheckName(name) != nil }

// rolloutMembers are the members of an ExtensionRollout that name no ExtensionConfig.
var rolloutMembers = []string{
	"abort", "approved", "candidateFor", "compare", "newClusters", "onDifference", "paused",
}

// closesMembers closes an ExtensionRollout and every ExtensionConfig that its spec may name.
func closesMembers(s spec, c *Closed) {
	names := append(texts(rolloutMembers, s.members), c.Name)
	slices.Sort(names)
	c.Extensions = slices.DeleteFunc(slices.Compact(names), unusable)
}

// stepMembers are the members of a HandlerChain that name no handler.
var stepMembers = []string{"allow", "hook", "onPartialCoverage", "settings"}

// closesSteps closes a chain and its steps. If these cannot be read, it closes their hook.
func closesSteps(s spec, c *Closed) {
	h := s.hook()
	for _, name := range texts(stepMembers, s.members) {
		if handler, extension, ok := strings.Cut(name, "."); ok && !unusable(handler) && !unusable(extension) {
			c.Handlers = append(c.Handlers, name)
		}
	}
	if h == nil {
		c.Hooks = s.unknownHook()
		return
	}
	c.Hooks = []hook.GroupHook{h.GroupHook()}
	c.ByName = h.Sole && len(c.Handlers) == 0
	if unusable(c.Name) {
		return
	}
	c.Chain = &registry.Chain{
		Name: c.Name, Hook: h.GroupHook(), Sole: h.Sole, Strict: h.Category == catalog.InPlaceUpdate,
		Block: s.text("onPartialCoverage") == string(v1alpha1.OnPartialCoverageBlock),
	}
	for _, name := range c.Handlers[:min(len(c.Handlers), limits.ChainSteps)] {
		c.Chain.Steps = append(c.Chain.Steps, registry.ChainStep{Handler: name})
	}
}

// closesHook closes the hook of a HookRule or HookJob in its namespaces. A rule that only audits closes nothing: its
// answers never count.
func closesHook(s spec, c *Closed) {
	if c.Kind == HookRule && s.text("action") == string(v1alpha1.HookRuleAudit) {
		return
	}
	c.NamespaceSelector = s.namespaces()
	if !unusable(c.Name) {
		c.Extensions = []string{c.Name}
	}
	h := s.hook()
	if h == nil {
		c.Hooks = s.unknownHook()
		return
	}
	c.Hooks = []hook.GroupHook{h.GroupHook()}
	handler := map[string]string{HookRule: "rule", HookJob: "job"}[c.Kind]
	if reg, ok := c.Closure.Registration(handler, h.GroupVersionHook); ok {
		c.Registration = &reg
	}
}

// Nothing reports whether nothing is closed, as for a rule that only audits.
func (c *Closed) Nothing() bool {
	return c.Extension == nil && !c.AllHooks && len(c.Hooks)+len(c.Extensions)+len(c.Handlers) == 0
}

// Effect says what is closed, for messages.
func (c *Closed) Effect() string {
	if c.Nothing() {
		return "nothing fails, because it only audits"
	}
	return fmt.Sprintf("calls that it may govern fail with %s", hook.NotReady)
}
