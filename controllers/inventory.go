// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"strings"
)

// inventory is what the manifests of a directory define. It never changes.
type inventory struct {
	extensions map[string]object
	policies   map[string]object
	namespaces map[string]object
	// definitions are CustomResourceDefinitions.
	definitions map[string]object
}

// kind is one of the maps of an inventory while it is built.
type kind struct {
	name    string
	before  map[string]object // those of the inventory before
	objects map[string]object
	claims  map[string]place // where each name was seen first
}

func newKind(name string, before map[string]object) *kind {
	return &kind{name: name, before: before, objects: map[string]object{}, claims: map[string]place{}}
}

// next returns the inventory of the manifests, which are in the order of their names, and all that is wrong with them.
// What a manifest no longer defines properly stays as it was in v, and what no manifest has any more is gone.
func (v *inventory) next(manifests []manifest, words *vocabulary) (*inventory, []problem) {
	extensions := newKind("ExtensionConfig", v.extensions)
	policies := newKind("ExtensionPolicy", v.policies)
	namespaces := newKind("Namespace", v.namespaces)
	definitions := newKind(DefinitionKind.Kind, v.definitions)
	var all []problem
	for _, m := range manifests {
		docs, problems := m.documents()
		for i := range docs {
			o, found := decode(&docs[i], words)
			if o != nil {
				k := extensions
				switch docs[i].kind {
				case policies.name:
					k = policies
				case namespaces.name:
					k = namespaces
				case definitions.name:
					k = definitions
				}
				found = k.add(o, found)
			}
			problems = append(problems, found...)
		}
		if slices.ContainsFunc(problems, func(p problem) bool { return p.unidentified }) {
			kept := slices.Concat(extensions.keep(m.file), policies.keep(m.file), namespaces.keep(m.file), definitions.keep(m.file))
			explainKept(problems, kept)
		}
		all = append(all, problems...)
	}
	return &inventory{
		extensions: extensions.objects, policies: policies.objects, namespaces: namespaces.objects, definitions: definitions.objects,
	}, all
}

// add takes o into account, unless its name is taken, and returns its problems, completed.
func (k *kind) add(o *object, problems []problem) []problem {
	if first, taken := k.claims[o.name]; taken {
		return append(problems, duplicate(k.name, o, first))
	}
	k.claims[o.name] = o.place
	if o.valid() {
		// What was compiled stays in use if nothing has changed.
		if old := k.before[o.name].policy; o.policy != nil && old != nil && old.sameContent(o.policy) {
			o.policy = old
		}
		k.objects[o.name] = *o
		return problems
	}
	effect := "it is not used"
	if old, ok := k.before[o.name]; ok {
		old.place = o.place // it belongs to this manifest now
		k.objects[o.name] = old
		effect = "what was read before stays in use"
	}
	for i := range problems {
		problems[i].effect = effect
	}
	return problems
}

// keep keeps what a manifest had before and may still have, in a part that cannot be read at present. It returns their
// names.
func (k *kind) keep(file string) []string {
	var kept []string
	for _, name := range slices.Sorted(maps.Keys(k.before)) {
		old := k.before[name]
		if _, taken := k.claims[name]; taken || old.file != file {
			continue
		}
		k.claims[name], k.objects[name] = old.place, old
		kept = append(kept, k.name+" "+name)
	}
	return kept
}

func explainKept(problems []problem, kept []string) {
	effect := "it is not used"
	if len(kept) > 0 {
		effect = "what the file had before stays in use: " + strings.Join(kept, ", ")
	}
	for i := range problems {
		if problems[i].unidentified {
			problems[i].effect = effect
		}
	}
}
