// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// JSON converts n to at most limit bytes of JSON. The error is an *Error.
func (n Node) JSON(limit int) ([]byte, error) {
	w := writer{limit: limit}
	if err := w.value(n.node, 0); err != nil {
		return nil, err
	}
	if len(w.text) > limit {
		return nil, w.tooLarge(n.node)
	}
	return w.text, nil
}

// Readable converts what can be read of n to JSON, of at most limit bytes. A value that has no form in JSON is null,
// and a member whose key has none is left out. Mappings that have the same key in one mapping are read as one, and
// other values as a list.
func (n Node) Readable(limit int) ([]byte, error) {
	w := writer{limit: limit, lenient: true}
	if err := w.value(n.node, 0); err != nil {
		return nil, err
	}
	return w.text, nil
}

// Members converts the members of a mapping to JSON, of at most limit bytes together. The error is an *Error.
func (n Node) Members(limit int) (map[string]json.RawMessage, error) {
	if n.node.Kind != yaml.MappingNode {
		return nil, errorf(n.line, "must be a mapping")
	}
	text, err := n.JSON(limit)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(text, &members)
	return members, err
}

// writer writes nodes as JSON.
type writer struct {
	text  []byte
	limit int
	// lenient writes what can be read, as Readable says.
	lenient bool
	// merged counts the members that merge keys add, including unwritten ones, and the mappings that have them.
	merged int
}

// merging returns for how many members a mapping counts that is merged: an empty one takes its time, too.
func merging(source *yaml.Node) int { return len(source.Content)/2 + 1 }

// visit returns an error if n is beyond the limits.
func (w *writer) visit(n *yaml.Node, depth int) error {
	switch {
	case len(w.text) > w.limit:
		return w.tooLarge(n)
	case depth > limits.JSONDepth:
		return errorf(n.Line, "nested deeper than %d", limits.JSONDepth)
	}
	return nil
}

func (w *writer) tooLarge(n *yaml.Node) error {
	return errorf(n.Line, "as JSON it is larger than %d MiB", w.limit>>20)
}

func (w *writer) value(n *yaml.Node, depth int) error {
	if w.lenient && depth > limits.JSONDepth {
		w.text = append(w.text, "null"...)
		return nil
	}
	if err := w.visit(n, depth); err != nil {
		return err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		return w.sequence(n, depth)
	default:
		text, err := appendScalar(w.text, n)
		if err != nil && w.lenient {
			w.text = append(w.text, "null"...)
			return nil
		}
		w.text = text
		return err
	}
}

func (w *writer) sequence(n *yaml.Node, depth int) error {
	w.text = append(w.text, '[')
	for i, item := range n.Content {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	w.text = append(w.text, ']')
	return nil
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	members, err := w.members(n, depth)
	if err != nil {
		return err
	}
	w.text = append(w.text, '{')
	for i, m := range members {
		if i > 0 {
			w.text = append(w.text, ',')
		}
		w.text = appendString(w.text, m.key)
		w.text = append(w.text, ':')
		if err := w.value(m.value, depth+1); err != nil {
			return err
		}
	}
	w.text = append(w.text, '}')
	return nil
}

// member is a key and its value.
type member struct {
	key   string
	value *yaml.Node
}

// members returns the members of a mapping in their order. Merged members take the position of the merge key, unless
// the mapping has a member of that name itself; of two merged ones, the first counts.
func (w *writer) members(n *yaml.Node, depth int) ([]member, error) {
	if w.lenient {
		n = readable(n)
	}
	defined := make(map[string]int, len(n.Content)/2) // the line by key
	keys := make([]string, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		if err != nil {
			return nil, err
		}
		if isMerge(n.Content[i]) {
			key = mergeKey
		}
		if line, twice := defined[key]; twice {
			return nil, errorf(n.Content[i].Line, "mapping key %q already defined at line %d",
				strings.TrimSuffix(key, "\xff"), line)
		}
		defined[key] = n.Content[i].Line
		keys = append(keys, key)
	}
	members := make([]member, 0, len(keys))
	for i, key := range keys {
		value := n.Content[2*i+1]
		if !isMerge(n.Content[2*i]) {
			members = append(members, member{key, value})
			continue
		}
		sources := mergeSources(value)
		if sources == nil {
			return nil, errorf(value.Line, "a merge key (<<) needs a mapping or a list of mappings")
		}
		for _, source := range sources {
			if err := w.visit(source, depth+1); err != nil {
				return nil, err
			}
			if w.merged += merging(source); w.merged > limits.ManifestMerged {
				return nil, errorf(value.Line, "merge keys (<<) stand for more than %d members", limits.ManifestMerged)
			}
			merged, err := w.members(source, depth+1)
			if err != nil {
				return nil, err
			}
			for _, m := range merged {
				if _, taken := defined[m.key]; !taken {
					defined[m.key] = value.Line
					members = append(members, m)
				}
			}
		}
	}
	return members, nil
}

// readable returns a mapping that has each key once, and only keys that are texts.
func readable(n *yaml.Node) *yaml.Node {
	once := *n
	once.Content = nil
	at := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		merge := isMerge(n.Content[i])
		if err != nil || merge && mergeSources(n.Content[i+1]) == nil {
			continue
		}
		if merge {
			key = mergeKey
		}
		before, twice := at[key]
		if !twice {
			at[key] = len(once.Content) + 1
			once.Content = append(once.Content, n.Content[i], n.Content[i+1])
			continue
		}
		first, second := resolve(once.Content[before]), resolve(n.Content[i+1])
		both := &yaml.Node{Kind: yaml.SequenceNode, Line: first.Line}
		switch {
		case merge:
			both.Content = slices.Concat(mergeSources(first), mergeSources(second))
		case first.Kind == yaml.MappingNode && second.Kind == yaml.MappingNode:
			both.Kind, both.Content = yaml.MappingNode, slices.Concat(first.Content, second.Content)
		default:
			both.Content = []*yaml.Node{first, second}
		}
		once.Content[before] = both
	}
	return &once
}

// mergeKey represents << among the keys of a mapping. No YAML text can contain it.
const mergeKey = "<<\xff"

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

// mergeSources returns the mappings that a merge key merges, nil if its value is not made of mappings.
func mergeSources(value *yaml.Node) []*yaml.Node {
	value = resolve(value)
	if value.Kind == yaml.MappingNode {
		return []*yaml.Node{value}
	}
	if value.Kind != yaml.SequenceNode {
		return nil
	}
	sources := make([]*yaml.Node, len(value.Content))
	for i, item := range value.Content {
		if sources[i] = resolve(item); sources[i].Kind != yaml.MappingNode {
			return nil
		}
	}
	return sources
}

// keyOf returns a key as a string: 4711 becomes "4711".
func keyOf(n *yaml.Node) (string, error) {
	key := resolve(n)
	if key.Kind != yaml.ScalarNode {
		return "", errorf(n.Line, "a key must be text")
	}
	switch key.ShortTag() {
	case "!!str": // the usual case, which need not be quoted and read again
		if _, isBool := boolean(key); !isBool {
			return key.Value, nil
		}
	case "!!merge":
		return key.Value, nil
	case "!!null":
		return "", errorf(n.Line, "a key must not be null")
	}
	text, err := appendScalar(nil, key)
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(text, &s) == nil {
		return s, nil
	}
	return string(text), nil
}

// appendScalar appends a scalar as JSON.
func appendScalar(dst []byte, n *yaml.Node) ([]byte, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!bool", "!!merge":
		if b, ok := boolean(n); ok {
			return append(dst, b...), nil
		}
		if tag == "!!bool" {
			return dst, errorf(n.Line, "cannot decode `%s` as a !!bool", n.Value)
		}
		return appendString(dst, n.Value), nil
	case "!!timestamp":
		return appendString(dst, n.Value), nil
	case "!!null":
		return append(dst, "null"...), nil
	case "!!int", "!!float":
		return appendNumber(dst, n)
	case "!!binary":
		return dst, errorf(n.Line, "tag !!binary has no form in JSON; leave the tag out where base64 text is meant")
	default:
		return dst, errorf(n.Line, "tag %s has no form in JSON", tag)
	}
}

// appendNumber appends a number as JSON, in the text that it has if that is JSON.
func appendNumber(dst []byte, n *yaml.Node) ([]byte, error) {
	if text := n.Value; text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid([]byte(text)) {
		return append(dst, text...), nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return dst, errorf(n.Line, "%s", withoutLine(err))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return dst, errorf(n.Line, "JSON has no %s", n.Value)
	}
	return append(dst, text...), nil
}

// The words of YAML 1.1 that are booleans to kubectl. The library takes the others for strings.
var (
	trueWords  = []string{"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
	falseWords = []string{"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}
)

// boolean returns the JSON of a boolean, and reports whether n is one: a word that is plain or has the tag !!bool.
func boolean(n *yaml.Node) (string, bool) {
	const explicit = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle |
		yaml.TaggedStyle
	if n.Style&explicit != 0 && n.ShortTag() != "!!bool" {
		return "", false
	}
	switch {
	case slices.Contains(trueWords, n.Value):
		return "true", true
	case slices.Contains(falseWords, n.Value):
		return "false", true
	}
	return "", false
}

// appendString appends a string as JSON, with <, > and & as they are.
func appendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
