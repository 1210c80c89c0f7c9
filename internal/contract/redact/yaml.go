// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// yaml returns a text in YAML without its secrets, or is false for text of other forms.
func (c *cleaner) yaml(s string, depth int, patch bool) (clean string, ok bool) {
	if len(s) > limits.RedactYAMLBytes || !strings.Contains(s, ":") && !strings.HasPrefix(strings.TrimSpace(s), "[") {
		return s, false
	}
	if trimmed := strings.TrimSpace(s); !strings.Contains(trimmed, "\n") && trimmed[0] != '{' && trimmed[0] != '[' {
		return s, false // a line of text may have a colon
	}
	c.left -= len(s)
	var documents []*yaml.Node
	for d := yaml.NewDecoder(strings.NewReader(s)); ; {
		n := &yaml.Node{}
		err := d.Decode(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(n.Content) == 0 ||
			n.Content[0].Kind != yaml.MappingNode && n.Content[0].Kind != yaml.SequenceNode {
			return s, false
		}
		documents = append(documents, n)
	}
	changed := false
	for _, n := range documents {
		text := appendYAML(nil, n)
		after, found, err := c.json(nil, text, depth, jsonForm{patch: patch, yaml: true})
		if err != nil {
			return Mask, !errors.As(err, new(*jsonscan.Error))
		}
		if found > 0 {
			changed = true
			d := json.NewDecoder(bytes.NewReader(after))
			d.UseNumber()
			assign(n, d)
		}
		changed = c.comments(n, depth) || changed
	}
	if !changed || len(documents) == 0 {
		return s, len(documents) > 0
	}
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, n := range documents {
		if e.Encode(n) != nil {
			return Mask, true
		}
	}
	if e.Close() != nil {
		return Mask, true
	}
	return b.String(), true
}

// appendYAML appends a value as JSON, in which scalars have their texts, and aliases are null.
func appendYAML(dst []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.DocumentNode:
		return appendYAML(dst, n.Content[0])
	case yaml.MappingNode:
		dst = append(dst, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			dst = append(jsonscan.AppendString(appendComma(dst, i), n.Content[i].Value), ':')
			dst = appendYAML(dst, n.Content[i+1])
		}
		return append(dst, '}')
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			dst = appendYAML(appendComma(dst, i), item)
		}
		return append(dst, ']')
	case yaml.ScalarNode:
		switch tag := n.ShortTag(); {
		case tag == "!!null" || tag == "!!bool":
			return append(dst, "null"...)
		case (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)):
			return append(dst, n.Value...)
		}
		return jsonscan.AppendString(dst, n.Value)
	default:
		return append(dst, "null"...)
	}
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

// assign gives the scalars of a value their texts in JSON of the same form.
func assign(n *yaml.Node, d *json.Decoder) {
	switch n.Kind {
	case yaml.DocumentNode:
		assign(n.Content[0], d)
		return
	case yaml.MappingNode, yaml.SequenceNode:
		_, _ = d.Token() // it is what appendYAML has written
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 {
				_, _ = d.Token()
				continue
			}
			assign(child, d)
		}
		_, _ = d.Token()
		return
	}
	token, _ := d.Token()
	switch token := token.(type) {
	case string:
		n.Value = token
	case json.Number:
		n.Value = token.String()
	}
}

// comments removes secrets from the comments of a value.
func (c *cleaner) comments(n *yaml.Node, depth int) (changed bool) {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if *comment == "" {
			continue
		}
		clean := c.text(*comment, depth+1, false)
		changed = changed || clean != *comment
		*comment = clean
	}
	for _, child := range n.Content {
		changed = c.comments(child, depth) || changed
	}
	return changed
}
