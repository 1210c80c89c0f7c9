// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/internal/base/text"
)

// FromJSON writes valid JSON as YAML, members in their order and numbers as they are. Characters that could mislead a
// reader of a terminal are escaped.
func FromJSON(w io.Writer, data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	root, err := fromJSON(decoder)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return errors.New(withoutLine(err))
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, err = w.Write(text.Escape(b.Bytes()))
	return err
}

// fromJSON reads one JSON value.
func fromJSON(d *json.Decoder) (*yaml.Node, error) {
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
			child, err := fromJSON(d) // in an object, keys are values too
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
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(token)}, nil
	case string:
		return stringNode(token), nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
}

// stringNode returns a string, in quotes if some reader of YAML could take it for something else.
func stringNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	fold := func(word string) bool { return strings.EqualFold(word, s) }
	switch {
	case slices.ContainsFunc(trueWords, fold), slices.ContainsFunc(falseWords, fold), strings.Contains(s, ":"),
		strings.ContainsFunc(s, func(r rune) bool {
			return text.IsControl(r) && r != '\n' || r == 0x2028 || r == 0x2029 || r == 0xfeff
		}):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n") && (strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n")):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
