// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"slices"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// Manifests holds the objects of a directory, read once.
type Manifests struct {
	// ExtensionConfigs are by name, and so are Policies, Chains and Rules.
	ExtensionConfigs []Config
	Policies         []Policy
	Chains           []Chain
	Rules            []Rule
	// Definitions are the CustomResourceDefinitions, by name, of which only the labels matter.
	Definitions []convert.CRD
	// Errors are the reasons why a directory source would not use a manifest, or a part of it.
	Errors []Error
}

// Config is an ExtensionConfig in a manifest.
type Config struct {
	Extension extensionconfig.Extension
	// Config is the ExtensionConfig in v1beta2. A status that cannot be read is empty, and reported in Errors.
	Config *runtimev1.ExtensionConfig
	Place  Place
	// Handlers are the places of the handlers in the status.
	Handlers []Place
}

// Policy is an ExtensionPolicy in a manifest.
type Policy struct {
	Policy extensionpolicy.Policy
	Place  Place
}

// Chain is a HandlerChain in a manifest.
type Chain struct {
	Chain registry.Chain
	Place Place
}

// Rule is a HookRule in a manifest.
type Rule struct {
	Rule  registry.Registration
	Place Place
}

// Error is something that is wrong in a manifest.
type Error struct {
	Place  Place
	Object string // for example ExtensionConfig "acme"; empty where that is not known
	Text   string
}

// Read reads a directory by the rules of a Directory, which would follow it, with one exception: an ExtensionConfig
// whose known handlers implement removed versions of hooks only is read, too.
func Read(dir string, hooks *catalog.Catalog) (Manifests, error) {
	files, err := ReadFiles(&files.Reader{}, dir)
	if err != nil {
		return Manifests{}, err
	}
	words, err := NewDecoder(hooks)
	if err != nil {
		return Manifests{}, fmt.Errorf("read manifests: %w", err)
	}
	words.keepRemoved = true
	defined, problems := (&Inventory{}).Next(files, words)
	var read Manifests
	for i := range problems {
		if p := &problems[i]; !p.Warning {
			read.Errors = append(read.Errors, Error{Place: p.Place, Object: p.Object, Text: p.Err.Error()})
		}
	}
	docs := map[Place][]document{}
	for i := range files {
		of, _ := files[i].documents()
		for j := range of {
			docs[of[j].Place] = append(docs[of[j].Place], of[j])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(defined.Of(extensionconfig.Kind))) {
		o := defined.Of(extensionconfig.Kind)[name]
		m := Config{Extension: *o.Extension, Place: o.Place, Config: &runtimev1.ExtensionConfig{}}
		m.Config.Name = name
		at := docs[o.Place]
		for i := range at {
			if d := &at[i]; d.kind == extensionconfig.Kind && (d.name == name || d.name == "") {
				d.written(&m)
				break
			}
		}
		read.ExtensionConfigs = append(read.ExtensionConfigs, m)
	}
	for _, p := range In[extensionpolicy.Policy](defined, extensionpolicy.Kind) {
		read.Policies = append(read.Policies, Policy{Policy: p, Place: defined.Of(extensionpolicy.Kind)[p.Name].Place})
	}
	for _, c := range In[registry.Chain](defined, handlerchain.Kind) {
		read.Chains = append(read.Chains, Chain{Chain: c, Place: defined.Of(handlerchain.Kind)[c.Name].Place})
	}
	for _, rule := range In[registry.Registration](defined, hookrule.Kind) {
		read.Rules = append(read.Rules, Rule{Rule: rule, Place: defined.Of(hookrule.Kind)[rule.Name].Place})
	}
	read.Definitions = defined.Definitions()
	return read, nil
}

// written fills in an ExtensionConfig whose document is valid except for its status.
func (d *document) written(m *Config) {
	members, problems := d.members()
	if problems != nil {
		return
	}
	config, problems := d.decodeVersion(members)
	if problems != nil {
		delete(members, "status")
		if config, problems = d.decodeVersion(members); problems != nil {
			return
		}
	}
	m.Config = config
	for i := range config.Status.Handlers {
		m.Handlers = append(m.Handlers, d.at(fmt.Sprintf("status.handlers[%d]", i)))
	}
}
