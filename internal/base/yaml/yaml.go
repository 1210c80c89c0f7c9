// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yaml converts between YAML and JSON, and knows the line of each value.
//
// Scalars mean the same as in kubectl, which uses sigs.k8s.io/yaml: plain yes, on and y are true; 0777 is octal;
// timestamps are strings; merge keys (<<) are merged; keys become strings. That library keeps no positions and reads
// numbers as Go values, so this package works on the nodes of go.yaml.in/yaml/v3, and differs where kubectl would
// change or lose something:
//
//   - a number keeps its text if JSON can write it that way, so that integers above 2^53 keep every digit, and members
//     keep their order;
//   - a mapping that has a key twice is an error;
//   - .inf, .nan, !!binary and tags of one's own are errors: JSON cannot express them.
//
// Aliases cannot make a small text grow without end: a conversion stops at a limit of bytes, at limits.JSONDepth, and
// at 100,000 merged members.
//
// All functions are safe for concurrent use. Nodes do not change.
package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// ErrEmpty is returned for a text without a document.
var ErrEmpty = errors.New("it is empty")

// Error is an error at a line of the text.
type Error struct {
	Line int
	Text string
}

// Error returns the line and the text.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

func errorf(line int, format string, args ...any) *Error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// ToJSON converts the one document of a text to at most limit bytes of JSON. It returns ErrEmpty or an *Error.
func ToJSON(text []byte, limit int) ([]byte, error) {
	docs, errs := Parse(text)
	switch {
	case len(errs) > 0:
		return nil, errs[0]
	case len(docs) == 0:
		return nil, ErrEmpty
	case len(docs) > 1:
		return nil, errorf(docs[1].Line(), "a second document begins; the file must hold one")
	}
	return docs[0].JSON(limit)
}

// Node is a value in a document.
type Node struct {
	node *yaml.Node // not an alias
	line int
}

func newNode(n *yaml.Node, line int) Node { return Node{node: resolve(n), line: line} }

// resolve returns the target of n if it is an alias. The library refuses an alias of an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Line returns the line where n begins. A member of a mapping begins with its key.
func (n Node) Line() int { return n.line }

// Text returns the text of a scalar, or "" for other nodes.
func (n Node) Text() string { return n.node.Value }

// Items returns the items of a sequence, and reports whether n is one.
func (n Node) Items() ([]Node, bool) {
	if n.node.Kind != yaml.SequenceNode {
		return nil, false
	}
	items := make([]Node, len(n.node.Content))
	for i, item := range n.node.Content {
		items[i] = newNode(item, item.Line)
	}
	return items, true
}

// Keys returns the keys of a mapping, without those that are merged, and reports whether n is one.
func (n Node) Keys() ([]string, bool) {
	if n.node.Kind != yaml.MappingNode {
		return nil, false
	}
	var keys []string
	for i := 0; i+1 < len(n.node.Content); i += 2 {
		keys = append(keys, resolve(n.node.Content[i]).Value)
	}
	return keys, true
}

// Find returns the node at a path of keys and indexes.
func (n Node) Find(path ...string) (Node, bool) {
	found, depth := n.nearest(path)
	return found, depth == len(path)
}

// LineOf returns the line of the node at a path, or of the innermost node around it that exists.
func (n Node) LineOf(path ...string) int {
	found, _ := n.nearest(path)
	return found.line
}

// nearest follows a path, and returns the last node that exists and how many steps lead there.
func (n Node) nearest(path []string) (Node, int) {
	left := limits.ManifestMerged
	for depth, step := range path {
		next, ok := n.child(step, 0, &left)
		if !ok {
			return n, depth
		}
		n = next
	}
	return n, len(path)
}

// maxMerges bounds how deep a key is looked for in mappings that merge others.
const maxMerges = 10

// child returns the member or the item that step names. left is the number of merged members to look at.
func (n Node) child(step string, merges int, left *int) (Node, bool) {
	content := n.node.Content
	if n.node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(content) {
			return newNode(content[i], content[i].Line), true
		}
		return Node{}, false
	}
	if n.node.Kind != yaml.MappingNode {
		return Node{}, false
	}
	for i := 0; i+1 < len(content); i += 2 {
		if key := resolve(content[i]); key.Value == step && key.Kind == yaml.ScalarNode && !isMerge(key) {
			return newNode(content[i+1], content[i].Line), true
		}
	}
	for i := 0; i+1 < len(content) && merges < maxMerges; i += 2 {
		if !isMerge(content[i]) {
			continue
		}
		for _, source := range mergeSources(content[i+1]) {
			if *left -= merging(source); *left < 0 {
				return Node{}, false
			}
			if found, ok := newNode(source, content[i].Line).child(step, merges+1, left); ok {
				return found, true
			}
		}
	}
	return Node{}, false
}

// Only returns a mapping without the members of other names. Members that come by a merge key stay.
func (n Node) Only(name string) Node {
	mapping := *n.node
	mapping.Content = nil
	for i := 0; i+1 < len(n.node.Content); i += 2 {
		if key := n.node.Content[i]; key.Value == name || isMerge(key) {
			mapping.Content = append(mapping.Content, key, n.node.Content[i+1])
		}
	}
	return Node{node: &mapping, line: n.line}
}

// FirstNotString returns the key of the first member of a mapping whose value is not a string.
func (n Node) FirstNotString() (string, bool) {
	if n.node.Kind != yaml.MappingNode {
		return "", false
	}
	for i := 0; i+1 < len(n.node.Content); i += 2 {
		value := resolve(n.node.Content[i+1])
		text, err := appendScalar(nil, value)
		if value.Kind != yaml.ScalarNode || err != nil || !bytes.HasPrefix(text, []byte(`"`)) {
			return n.node.Content[i].Value, true
		}
	}
	return "", false
}
