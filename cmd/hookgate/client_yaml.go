// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML and JSON are translated through trees of nodes, not through Go values: numbers keep their text, so that integers
// above 2^53 survive, and members keep their order.

// maxYAMLDepth and the size limit of yamlToJSON bound what a small file with aliases can grow to.
const maxYAMLDepth = 1000

// yamlToJSON translates one YAML document, at most limit bytes of JSON. Scalars mean what they mean to kubectl: yes and no
// are booleans, timestamps are strings. Errors name the line.
func yamlToJSON(data []byte, limit int) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errEmpty
		}
		return nil, yamlError(err)
	}
	if len(document.Content) != 1 || isNull(document.Content[0]) {
		return nil, errEmpty
	}
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, yamlError(err)
	case len(next.Content) != 1 || isNull(next.Content[0]): // a closing ---
	default:
		return nil, fmt.Errorf("line %d: a second document begins; a file holds one request", next.Line)
	}
	w := yamlWriter{limit: limit}
	if err := w.value(document.Content[0], 0); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

var errEmpty = errors.New("it is empty")

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// parserErrors are the errors that the library reports one line too early, and without a line if that is the first.
var parserErrors = []string{
	"did not find expected key", "did not find expected node content", "did not find expected '-' indicator",
	"did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected <document start>",
}

// yamlError drops the library's prefix and puts its line right.
func yamlError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line, what := 0, text
	if _, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr == nil {
		_, what, _ = strings.Cut(text, ": ")
	}
	if slices.Contains(parserErrors, what) {
		return fmt.Errorf("line %d: %s", line+1, what)
	}
	return errors.New(text)
}

// yamlWriter writes nodes as JSON.
type yamlWriter struct {
	bytes.Buffer
	limit int
}

func (w *yamlWriter) value(n *yaml.Node, depth int) error {
	switch {
	case w.Len() > w.limit:
		return fmt.Errorf("line %d: as JSON it is larger than the %d MiB that a request may have", n.Line, w.limit>>20)
	case depth > maxYAMLDepth:
		return fmt.Errorf("line %d: nested deeper than %d", n.Line, maxYAMLDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := w.value(item, depth+1); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	default:
		text, err := scalar(n)
		w.Write(text)
		return err
	}
}

func (w *yamlWriter) mapping(n *yaml.Node, depth int) error {
	seen := make(map[string]bool, len(n.Content)/2)
	w.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("line %d: key %q is there twice", n.Content[i].Line, key)
		}
		seen[key] = true
		if i > 0 {
			w.WriteByte(',')
		}
		w.Write(quote(key))
		w.WriteByte(':')
		if err := w.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

// keyOf returns a key as the text that JSON needs it to be: 4711 becomes "4711".
func keyOf(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a key must be text", n.Line)
	}
	switch n.ShortTag() {
	case "!!merge":
		return "", fmt.Errorf("line %d: merge keys (<<) are not supported", n.Line)
	case "!!null":
		return "", fmt.Errorf("line %d: a key must not be null", n.Line)
	}
	text, err := scalar(n)
	if err != nil {
		return "", err
	}
	var key string
	if json.Unmarshal(text, &key) == nil {
		return key, nil
	}
	return string(text), nil
}

// scalar returns a scalar as JSON. A number that JSON writes in the same way keeps its text.
func scalar(n *yaml.Node) ([]byte, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		if isPlain(n) && slices.Contains(oldTrue, strings.ToLower(n.Value)) {
			return []byte("true"), nil
		}
		if isPlain(n) && slices.Contains(oldFalse, strings.ToLower(n.Value)) {
			return []byte("false"), nil
		}
		return quote(n.Value), nil
	case "!!timestamp":
		return quote(n.Value), nil
	case "!!null":
		return []byte("null"), nil
	case "!!bool", "!!int", "!!float":
		if tag != "!!bool" && json.Valid([]byte(n.Value)) {
			return []byte(n.Value), nil
		}
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, yamlError(err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: JSON has no %s", n.Line, n.Value)
		}
		return text, nil
	default:
		return nil, fmt.Errorf("line %d: tag %s has no form in JSON", n.Line, tag)
	}
}

// oldTrue and oldFalse are booleans in YAML 1.1, and so to kubectl.
var (
	oldTrue  = []string{"y", "yes", "on"}
	oldFalse = []string{"n", "no", "off"}
)

// isPlain tells whether a scalar stands without quotes and without a tag, so that its text decides what it is.
func isPlain(n *yaml.Node) bool {
	const explicit = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Style&explicit == 0
}

// quote returns a string as JSON, with <, > and & as they are.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// jsonToYAML writes valid JSON as YAML, members in their order and numbers as they are.
func jsonToYAML(w io.Writer, data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	root, err := yamlNode(decoder)
	if err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return yamlError(err)
	}
	return e.Close()
}

// yamlNode reads one JSON value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			n.Kind = yaml.SequenceNode
		}
		for d.More() {
			child, err := yamlNode(d) // in an object, keys are values too
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token()
		return n, err
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	case string:
		return yamlString(token), nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// yamlString returns a string, in quotes if some reader of YAML could take it for something else.
func yamlString(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	lower := strings.ToLower(s)
	switch {
	case slices.Contains(oldTrue, lower), slices.Contains(oldFalse, lower), strings.Contains(s, ":"),
		strings.ContainsFunc(s, func(r rune) bool {
			return r < ' ' && r != '\n' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
		}):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n") && (strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n")):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
