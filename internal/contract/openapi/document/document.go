// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package document makes the OpenAPI document of a group of hooks from its descriptors. tools/openapi makes the
// documents of this repository with it, and adds what descriptors lack; a program with further groups makes theirs when
// it runs.
//
// The package knows what REST callers see of a hook: paths, parameters, headers and the form of messages in JSON, which
// is that of package codec. It does not serve documents; see package openapi. Its functions are safe for concurrent
// use.
package document

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
)

// Schema is a schema of OpenAPI 3.0, or another object of a document, as JSON.
type Schema = map[string]any

// Document is an OpenAPI document with its parts in reading order.
type Document struct {
	OpenAPI    string              `json:"openapi"`
	Info       Schema              `json:"info"`
	Servers    []Schema            `json:"servers"`
	Tags       []Schema            `json:"tags"`
	Paths      map[string]PathItem `json:"paths"`
	Components Schema              `json:"components"`
}

// PathItem is what one path answers.
type PathItem struct {
	Post Operation `json:"post"`
}

// Operation is one way to call a hook.
type Operation struct {
	Tags        []string `json:"tags"`
	OperationID string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description,omitempty"`
	Parameters  []Schema `json:"parameters"`
	RequestBody Schema   `json:"requestBody"`
	Responses   Schema   `json:"responses"`
}

// Group is a group of hooks to document. Only Title and Hooks are required.
type Group struct {
	Title, Description string
	// License is the object of that name; nil leaves it out.
	License Schema
	// Hooks are those of one group, in all versions.
	Hooks []*catalog.Hook
	// Comments are those of the protos, by the full name of what they are about. Generated code does not have them.
	Comments map[protoreflect.FullName]string
	// Requests and Answers are examples by the name of the hook, without kind and apiVersion.
	Requests, Answers map[string]Schema
}

// Document returns the document of the group. The schemas are those of Schemas, or others with the same names.
func (g *Group) Document(schemas map[string]Schema) *Document {
	info := Schema{"title": g.Title, "version": g.version()}
	if g.Description != "" {
		info["description"] = g.Description
	}
	if g.License != nil {
		info["license"] = g.License
	}
	d := &Document{
		OpenAPI: "3.0.3", Info: info,
		Servers: []Schema{{"url": "/", "description": "The server of this document"}},
		Tags:    g.tags(), Paths: map[string]PathItem{},
	}
	for _, h := range g.Hooks {
		g.add(d, h, schemas)
	}
	schemas["Error"] = errorSchema()
	d.Components = Schema{
		"schemas": schemas, "parameters": g.parameters(), "headers": headers(), "responses": responses(),
	}
	return d
}

// version returns the newest version of the group.
func (g *Group) version() string {
	for _, h := range g.Hooks {
		return h.Hub().Version
	}
	return ""
}

// tags returns a tag for each category of hooks: Discovery, which callers need first, and then the others.
func (g *Group) tags() []Schema {
	var tags []Schema
	seen := map[catalog.Category]bool{}
	for _, h := range g.Hooks {
		if seen[h.Category] {
			continue
		}
		seen[h.Category] = true
		tag := Schema{"name": string(h.Category)}
		service, _, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		if about := g.Comments[protoreflect.FullName(service)]; about != "" {
			tag["description"] = about
		}
		if h.Singleton() {
			tags = slices.Insert(tags, 0, tag)
		} else {
			tags = append(tags, tag)
		}
	}
	return tags
}

// JSON returns the document as indented JSON.
func (d *Document) JSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(d)
	return text.Bytes(), err
}
