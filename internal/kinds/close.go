// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

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
func (k *Kind) Close(name string, content []byte, mistake string, hooks *catalog.Catalog) Closed {
	c := Closed{Closure: registry.Closure{
		Kind: k.Name, Name: text.Cut(name, limits.QuotedBytes), Mistake: text.Cut(mistake, limits.PolicyMessageBytes),
	}}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	_ = json.Unmarshal(content, &object) // what cannot be read is not there
	k.Closes(Spec{object.Spec, hooks}, &c)
	return c
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
	return fmt.Sprintf("the gateway refuses every call that the object may apply to (%s)", hook.NotReady)
}

// Spec reads the spec of an object that may have any form.
type Spec struct {
	Members map[string]any
	Hooks   *catalog.Catalog
}

// Text returns the text at a path, or nothing.
func (s Spec) Text(path ...string) string {
	found, _ := s.At(path...).(string)
	return found
}

// At returns the value at a path, or nil.
func (s Spec) At(path ...string) any {
	var at any = s.Members
	for _, name := range path {
		in, _ := at.(map[string]any)
		at = in[name]
	}
	return at
}

// Texts returns the texts anywhere in values, but the names of members, each once and in order. What has a name among
// skip is left out.
func Texts(skip []string, values ...any) []string {
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

// Namespaces returns the namespaceSelector, or nil, which matches all, if it cannot be read.
func (s Spec) Namespaces() labels.Selector {
	written, ok := s.Members["namespaceSelector"]
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

// Hook returns the hook, or nil if it cannot be read.
func (s Spec) Hook() *catalog.Hook {
	name := s.Text("hook")
	i := slices.IndexFunc(s.Hooks.Hubs(), func(h *catalog.Hook) bool { return h.Hook == name && !h.Singleton() })
	if i < 0 {
		return nil
	}
	return s.Hooks.Hubs()[i]
}

// UnknownHook returns the hooks that an object may be for whose hook cannot be read: those that run before something
// happens, which nothing makes up for later, and those whose names are like what was written.
func (s Spec) UnknownHook() []hook.GroupHook {
	var all []hook.GroupHook
	var names []string
	for _, h := range s.Hooks.Hubs() {
		names = append(names, h.Hook)
	}
	var meant []string
	for _, written := range Texts(nil, s.At("hook")) {
		meant = append(meant, text.Nearest(text.Cut(written, limits.QuotedBytes), names))
	}
	for _, h := range s.Hooks.Hubs() {
		if strings.HasPrefix(h.Hook, "Before") || slices.Contains(meant, h.Hook) {
			all = append(all, h.GroupHook())
		}
	}
	return all
}

// Unusable reports whether a text is no name of a handler or of an object that has some.
func Unusable(name string) bool { return registry.CheckName(name) != nil }
