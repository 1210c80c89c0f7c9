// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
)

// Place is where something stands in a manifest.
type Place struct {
	File string
	Line int
}

// Manifests are what a directory defines, read once.
type Manifests struct {
	// ExtensionConfigs are by name, and so are Policies.
	ExtensionConfigs []ManifestConfig
	Policies         []ManifestPolicy
	// Errors are what keeps a Directory from using a manifest, or a part of it.
	Errors []ManifestError
}

// ManifestConfig is an ExtensionConfig in a manifest.
type ManifestConfig struct {
	Extension Extension
	// Config is what is written, in v1beta2. A status that cannot be read is empty, and among the errors.
	Config *runtimev1.ExtensionConfig
	Place  Place
	// Handlers are the places of the handlers in the status.
	Handlers []Place
}

// ManifestPolicy is an ExtensionPolicy in a manifest.
type ManifestPolicy struct {
	Policy Policy
	Place  Place
}

// ManifestError is something that is wrong in a manifest.
type ManifestError struct {
	Place  Place
	Object string // for example ExtensionConfig "acme"; empty where that is not known
	Text   string
}

// ReadManifests reads a directory by the rules of a Directory, which would follow it, with one exception: an ExtensionConfig whose
// known handlers implement removed versions of hooks only is read, too.
func ReadManifests(dir string, hooks *catalog.Catalog) (Manifests, error) {
	files, err := readDirectory(dir)
	if err != nil {
		return Manifests{}, err
	}
	words, err := newVocabulary()
	if err != nil {
		return Manifests{}, fmt.Errorf("read manifests: %w", err)
	}
	words.hooks, words.judging = hooks, true
	defined, problems := (&inventory{}).next(files, words)
	var read Manifests
	for i := range problems {
		if p := &problems[i]; !p.warning {
			read.Errors = append(read.Errors, ManifestError{Place: p.exported(), Object: p.object, Text: p.err.Error()})
		}
	}
	var docs []document
	for i := range files {
		of, _ := files[i].documents()
		docs = append(docs, of...)
	}
	for _, name := range slices.Sorted(maps.Keys(defined.extensions)) {
		o := defined.extensions[name]
		m := ManifestConfig{Extension: *o.extension, Place: o.exported(), Config: &runtimev1.ExtensionConfig{}}
		m.Config.Name = name
		for i := range docs {
			if d := &docs[i]; d.place == o.place && d.kind == "ExtensionConfig" && (d.name == name || d.name == "") {
				d.written(&m)
				break
			}
		}
		read.ExtensionConfigs = append(read.ExtensionConfigs, m)
	}
	for _, name := range slices.Sorted(maps.Keys(defined.policies)) {
		o := defined.policies[name]
		read.Policies = append(read.Policies, ManifestPolicy{Policy: *o.policy, Place: o.exported()})
	}
	return read, nil
}

// written fills in what the document says of an ExtensionConfig that is valid but for its status.
func (d *document) written(m *ManifestConfig) {
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
		m.Handlers = append(m.Handlers, d.at(fmt.Sprintf("status.handlers[%d]", i)).exported())
	}
}

func (p place) exported() Place { return Place{File: p.file, Line: p.line} }
