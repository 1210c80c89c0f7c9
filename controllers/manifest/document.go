// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// place is where something stands in a manifest.
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
	node       *yaml.Node // a mapping
	apiVersion string
	kind       string
	name       string
}

// at returns the Place of the field at that path, or of the innermost field around it that the document has.
func (d *document) at(path string) Place {
	line := d.Line
	node := d.node
	for _, step := range splitPath(path) {
		next, at := child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return Place{File: d.File, Line: line}
}

// find returns the node at that path, or nil.
func (d *document) find(path ...string) *yaml.Node {
	node := d.node
	for _, step := range path {
		if node, _ = child(node, step); node == nil {
			return nil
		}
	}
	return node
}

// child returns the value of a mapping's key or a sequence's index, and the line where it begins: that of the key,
// because the value of a block stands below it.
func child(node *yaml.Node, step string) (*yaml.Node, int) {
	node = resolve(node)
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	}
	return nil, 0
}

func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
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

// parse returns the documents of a manifest, lists expanded. Text between two document markers that is not YAML is one
// problem and leaves the other documents alone.
func parse(file string, content []byte) ([]document, []Problem) {
	var docs []document
	var problems []Problem
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if json.Valid(content) {
		content = jsonEscape.ReplaceAllFunc(content, unescape)
	}
	for _, c := range split(content) {
		roots, err := c.parse()
		if err != nil {
			problems = append(problems, Problem{
				Place: Place{File: file, Line: c.lineOf(err)}, Err: notYAML(err), unidentified: true,
			})
			continue
		}
		for _, root := range roots {
			d, p := identify(file, root)
			docs, problems = append(docs, d...), append(problems, p...)
		}
	}
	return docs, problems
}

// jsonEscape matches every escape in a JSON text, with pairs of surrogates as one.
var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// unescape returns what an escape stands for if it is one that the YAML parser does not know.
func unescape(escape []byte) []byte {
	if string(escape) != `\/` && len(escape) == 2 {
		return escape
	}
	var s string
	if err := json.Unmarshal(slices.Concat([]byte(`"`), escape, []byte(`"`)), &s); err != nil {
		return escape
	}
	return []byte(s)
}

// chunk is the text from one document marker to the next.
type chunk struct {
	before int // how many lines of the file stand before it
	lines  [][]byte
}

// split cuts a manifest at its document markers, so that text which is not YAML costs one document and not the file.
// YAML does not allow a line that begins with a marker inside a document, whatever the style of a scalar.
func split(content []byte) []chunk {
	var chunks []chunk
	var current chunk
	filled := false // current has more than comments, directives and blank lines
	for i, line := range bytes.SplitAfter(content, []byte("\n")) {
		trimmed := bytes.TrimRight(line, " \t\r\n")
		marker := bytes.Equal(trimmed, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("---\t"))
		if marker && filled {
			chunks = append(chunks, current)
			current, filled = chunk{before: i}, false
		}
		current.lines = append(current.lines, line)
		if len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' {
			filled = true
		}
	}
	if filled {
		chunks = append(chunks, current)
	}
	return chunks
}

// parse returns the root nodes of the chunk: one, or several where the text ends documents with "...". Lines count from
// the beginning of the file.
func (c chunk) parse() ([]*yaml.Node, error) { return c.parseLines(len(c.lines)) }

func (c chunk) parseLines(n int) ([]*yaml.Node, error) {
	// The parser counts the lines of the file if it gets as many.
	text := append(bytes.Repeat([]byte("\n"), c.before), bytes.Join(c.lines[:n], nil)...)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var roots []*yaml.Node
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return nil, err
		case node.Kind == yaml.DocumentNode && len(node.Content) == 1 && node.Content[0].ShortTag() != "!!null":
			roots = append(roots, node.Content[0])
		}
	}
}

// lineOf returns the line at which parsing fails with Err: the shortest beginning of the chunk that fails the same way
// ends with it. What the parser itself says is often the beginning of the block around it, or nothing.
func (c chunk) lineOf(err error) int {
	want := notYAML(err).Error()
	n := sort.Search(len(c.lines), func(i int) bool {
		_, err := c.parseLines(i + 1)
		return err != nil && notYAML(err).Error() == want
	})
	return c.before + min(n+1, len(c.lines))
}

// notYAML returns a parser's error without the line that it names.
func notYAML(err error) error {
	_, text := cutLine(strings.TrimPrefix(err.Error(), "yaml: "))
	return fmt.Errorf("not YAML: %s", text)
}

// cutLine splits "line 3: text".
func cutLine(s string) (int, string) {
	rest, ok := strings.CutPrefix(s, "line ")
	if !ok {
		return 0, s
	}
	number, text, ok := strings.Cut(rest, ": ")
	line, err := strconv.Atoi(number)
	if !ok || err != nil {
		return 0, s
	}
	return line, text
}

// identify returns the object that root describes, and the objects in it if it is a list. Items of a typed list need not
// repeat apiVersion and kind.
func identify(file string, root *yaml.Node) ([]document, []Problem) {
	list, p := newDocument(file, root, "", "")
	if p != nil {
		return nil, []Problem{*p}
	}
	element, isList := strings.CutSuffix(list.kind, "List")
	items := list.find("items")
	if !isList || items == nil || resolve(items).Kind != yaml.SequenceNode {
		return []document{list}, nil
	}
	apiVersion := list.apiVersion
	if element == "" {
		apiVersion = "" // a v1 List has items of any kind, which say which
	}
	var docs []document
	var problems []Problem
	for _, item := range resolve(items).Content {
		if d, p := newDocument(file, item, apiVersion, element); p != nil {
			problems = append(problems, *p)
		} else {
			docs = append(docs, d)
		}
	}
	return docs, problems
}

// newDocument returns the object that node describes; apiVersion and kind are those of one that has none.
func newDocument(file string, node *yaml.Node, apiVersion, kind string) (document, *Problem) {
	d := document{Place: Place{File: file, Line: node.Line}, node: resolve(node), apiVersion: apiVersion, kind: kind}
	if v := d.find("apiVersion"); v != nil {
		d.apiVersion = resolve(v).Value
	}
	if v := d.find("kind"); v != nil {
		d.kind = resolve(v).Value
	}
	if v := d.find("metadata", "name"); v != nil {
		d.name = resolve(v).Value
	}
	if d.apiVersion == "" || d.kind == "" {
		return d, &Problem{Place: d.Place, Err: errors.New("not a Kubernetes Object: it needs apiVersion and kind"), unidentified: true}
	}
	return d, nil
}
