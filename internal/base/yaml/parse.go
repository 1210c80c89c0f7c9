// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Parse returns the documents of a text, which need not be converted. Text between two document markers that is not
// YAML is one error, with the line that is wrong, and leaves the other documents alone. Documents that are empty or
// null are left out.
func Parse(text []byte) ([]Node, []*Error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the mark that some editors put in front
	if json.Valid(text) {
		text = jsonEscape.ReplaceAllFunc(text, unescape)
	}
	if n := marks(text); n > limits.ManifestValues {
		return nil, []*Error{errorf(1, "more than %d values; use several files", limits.ManifestValues)}
	}
	var docs []Node
	var errs []*Error
	left := locating{lines: maxLocatedLines, bytes: maxLocatedBytes}
	for _, c := range split(text) {
		if len(docs)+len(errs) >= limits.ManifestDocuments {
			return docs, append(errs, errorf(c.before+1, "more than %d documents; use several files", limits.ManifestDocuments))
		}
		if c.tags > maxTags {
			errs = append(errs, errorf(c.before+1, "more than %d directives %%TAG", maxTags))
			continue
		}
		document := bytes.Join(c.lines, nil)
		roots, err := parse(document)
		if err != nil && left.spend(len(c.lines), len(document)) {
			errs = append(errs, c.locate(err))
			continue
		} else if err != nil {
			errs = append(errs, errorf(c.before+1, "%s", withoutLine(err)))
			continue
		}
		for _, root := range roots {
			shift(root, c.before)
			docs = append(docs, newNode(root, root.Line))
		}
	}
	return docs, errs
}

// marks returns no less than the number of values in a text, without building them: each has a line of its own, or a
// character that separates it from another.
func marks(text []byte) int {
	n := 0
	for i, c := range text {
		switch c {
		case '\n', ',', ':', '[', '{', '?':
			n++
		case '-':
			if i+1 == len(text) || text[i+1] <= ' ' { // the mark of an item, which a space or a new line follows
				n++
			}
		}
	}
	return n
}

// jsonEscape matches every escape in a JSON text, with pairs of surrogates as one.
var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// unescape returns the text of an escape that the parser does not know.
func unescape(escape []byte) []byte {
	if string(escape) == `\/` {
		return escape[1:]
	}
	if len(escape) == 2 {
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
	before int // the number of lines before it
	lines  [][]byte
	tags   int // directives that name tags
}

// maxTags is the number of directives %TAG of a document. The parser compares each with all others.
const maxTags = limits.ManifestTags

// split cuts a text at its document markers. YAML allows no line that begins with a marker inside a document, whatever
// the style of a scalar.
func split(text []byte) []chunk {
	var chunks []chunk
	var current chunk
	// filled reports whether current has more than comments, directives, blank lines and a marker, and marked whether it
	// has a marker.
	filled, marked := false, false
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		trimmed := bytes.TrimRight(line, " \t\r\n")
		bare := string(trimmed) == "---"
		marker := bare || bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("---\t"))
		if marker && filled {
			chunks = append(chunks, current)
		}
		if marker && (filled || marked) { // without content, it is an empty document
			current, filled = chunk{before: i}, false
		}
		marked = marked || marker
		current.lines = append(current.lines, line)
		if bytes.HasPrefix(line, []byte("%TAG")) {
			current.tags++
		}
		if len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != '%' && !bare {
			filled = true
		}
	}
	if filled {
		chunks = append(chunks, current)
	}
	return chunks
}

// parse returns the root nodes of a chunk: one, or several where the text ends documents with "...".
func parse(text []byte) ([]*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var roots []*yaml.Node
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return nil, err
		case len(roots) >= limits.ManifestDocuments:
			return nil, fmt.Errorf("more than %d documents; use several files", limits.ManifestDocuments)
		case node.Kind == yaml.DocumentNode && len(node.Content) == 1 && node.Content[0].ShortTag() != "!!null":
			roots = append(roots, node.Content[0])
		}
	}
}

// shift moves a tree of nodes down by some lines.
func shift(n *yaml.Node, lines int) {
	n.Line += lines
	for _, child := range n.Content {
		shift(child, lines)
	}
}

// maxLocatedLines and maxLocatedBytes bound the chunks whose errors are located, together: that takes as many attempts
// as the number of lines has bits.
const (
	maxLocatedLines = limits.LocatedLines
	maxLocatedBytes = limits.LocatedBytes
)

// locating is what is left of these.
type locating struct{ lines, bytes int }

// spend reports whether the error of a chunk may be located.
func (l *locating) spend(lines, bytes int) bool {
	if lines > l.lines || bytes > l.bytes {
		return false
	}
	l.lines -= lines
	l.bytes -= bytes
	return true
}

// locate returns the error with its line: the shortest beginning of the chunk that fails in the same way ends there.
// The parser itself often names the beginning of the block around it, or no line.
func (c chunk) locate(err error) *Error {
	want := withoutLine(err)
	n := sort.Search(len(c.lines), func(i int) bool {
		_, err := parse(bytes.Join(c.lines[:i+1], nil))
		return err != nil && withoutLine(err) == want
	})
	return errorf(c.before+min(n+1, len(c.lines)), "%s", want)
}

var linePrefix = regexp.MustCompile(`^line \d+: `)

// withoutLine returns the text of a library's error without its name and the line.
func withoutLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	return strings.TrimPrefix(text, linePrefix.FindString(text))
}
