// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/yaml"
)

// Place is a location in a manifest.
type Place struct {
	File string
	Line int
}

// String returns the form that editors and terminals make a link of. Without a line, it is the file alone.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// document is one object of a manifest, not yet decoded.
type document struct {
	Place
	node       yaml.Node // a mapping
	apiVersion string
	kind       string
	name       string
}

// at returns the place of the field at that path, or of the innermost field around it that the document has.
func (d *document) at(path string) Place {
	return Place{File: d.File, Line: d.node.LineOf(splitPath(path)...)}
}

// splitPath splits a field path such as spec.settings[a.b] or items[2].name into its steps.
func splitPath(path string) []string {
	var steps []string
	for path != "" {
		if key, ok := strings.CutPrefix(path, "["); ok {
			step, rest, _ := strings.Cut(key, "]")
			steps, path = append(steps, step), rest
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end > 0 {
			steps = append(steps, path[:end])
		}
		path = path[end:]
	}
	return steps
}

// parse returns the documents of a manifest, lists expanded. Text between two document markers that is not YAML is
// one problem and leaves the other documents alone.
func parse(file string, content []byte) ([]document, []Problem) {
	roots, errs := yaml.Parse(content)
	var docs []document
	var problems []Problem
	for _, err := range errs {
		problems = append(problems, Problem{
			Place: Place{File: file, Line: err.Line}, Err: errors.New("not YAML: " + err.Text),
			unidentified: true, unreadable: true,
		})
	}
	for _, root := range roots {
		d, p := identify(file, root)
		docs, problems = append(docs, d...), append(problems, p...)
	}
	return docs, problems
}

// identify returns the object that root describes, and the objects in it if it is a list. Items of a typed list need
// not repeat apiVersion and kind.
func identify(file string, root yaml.Node) ([]document, []Problem) {
	list, p := newDocument(file, root, "", "")
	if p != nil {
		return nil, []Problem{*p}
	}
	element, isList := strings.CutSuffix(list.kind, "List")
	member, _ := root.Find("items")
	items, ok := member.Items()
	switch {
	case isList && !ok && element == "":
		return nil, []Problem{{
			Place: list.Place, Object: list.kind, Err: errors.New("a List without items, or with an invalid item"),
			unidentified: true, unreadable: true,
		}}
	case !isList || !ok:
		return []document{list}, nil
	}
	apiVersion := list.apiVersion
	if element == "" {
		apiVersion = "" // each item of a v1 List has its own
	}
	var docs []document
	var problems []Problem
	for _, item := range items {
		if d, p := newDocument(file, item, apiVersion, element); p != nil {
			problems = append(problems, *p)
		} else {
			docs = append(docs, d)
		}
	}
	return docs, problems
}

// objectMembers are members of objects, and of lists of them. What has any of them is meant to be one, unlike the files
// of other programs.
var objectMembers = []string{"apiVersion", "kind", "metadata", "spec", "items"}

// otherFile reports whether a document is none of an object, but of some other program: it is a mapping that has no
// member of objects, in any letter case.
func otherFile(node yaml.Node) bool {
	keys, ok := node.Keys()
	return ok && !slices.ContainsFunc(keys, func(key string) bool {
		return slices.ContainsFunc(objectMembers, func(name string) bool { return strings.EqualFold(name, key) })
	})
}

// newDocument returns the object that node describes. An object without apiVersion or kind has these.
func newDocument(file string, node yaml.Node, apiVersion, kind string) (document, *Problem) {
	d := document{Place: Place{File: file, Line: node.Line()}, node: node, apiVersion: apiVersion, kind: kind}
	if v, ok := node.Find("apiVersion"); ok {
		d.apiVersion = v.Text()
	}
	if v, ok := node.Find("kind"); ok {
		d.kind = v.Text()
	}
	if v, ok := node.Find("metadata", "name"); ok {
		d.name = v.Text()
	}
	group, _, _ := strings.Cut(d.apiVersion, "/")
	if _, mistake := d.misspelt(group); (d.apiVersion == "" || d.kind == "") && mistake == nil {
		return d, &Problem{
			Place: d.Place, Err: errors.New("not a Kubernetes object: it needs apiVersion and kind"),
			unidentified: true, unreadable: d.apiVersion+d.kind == "" && !otherFile(node),
		}
	}
	return d, nil
}
