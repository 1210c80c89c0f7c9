// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import "go.yaml.in/yaml/v3"

// Lines returns the first and the last line of a node, and reports whether all of it is in block style and written
// there, so that lines can be added and removed. Scalars of several lines, anchors and aliases are not.
func (n Node) Lines() (first, last int, ok bool) {
	last, ok = lastLine(n.node)
	return n.line, max(last, n.line), ok
}

// lastLine returns the line of the last scalar of a node.
func lastLine(n *yaml.Node) (last int, ok bool) {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0, isMerge(n):
		return 0, false
	case n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) > 0:
		first, end := n.Line, n.Line
		for _, c := range n.Content {
			of, ok := lastLine(c)
			if !ok {
				return 0, false
			}
			end = max(end, of)
		}
		return end, end == first // what ends in another line ends with a bracket that has no place
	}
	last = n.Line
	for _, c := range n.Content {
		of, ok := lastLine(c)
		if !ok {
			return 0, false
		}
		last = max(last, of)
	}
	return last, true
}

// IsBlock reports whether a node is a mapping or a sequence with a line for each member or item.
func (n Node) IsBlock() bool {
	return n.node.Kind != yaml.ScalarNode && n.node.Style&yaml.FlowStyle == 0 && len(n.node.Content) > 0
}
