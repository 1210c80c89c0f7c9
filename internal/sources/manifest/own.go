// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
)

// ReadFile returns one manifest.
func ReadFile(reader *files.Reader, path string) (File, error) {
	content, err := reader.Read(path, limits.ManifestBytes)
	return File{file: path, content: content}, err
}

// Own is an object of a kind of hookgate.dev, with the document that it was decoded from.
type Own[T any] struct {
	Object *T
	doc    *document
}

// NewFile returns a manifest with a content that is not read from the file.
func NewFile(name string, content []byte) File { return File{file: name, content: content} }

// Content returns the text of f.
func (f *File) Content() []byte { return f.content }

// Node returns the document of the object.
func (o *Own[T]) Node() yaml.Node { return o.doc.node }

// At returns the place of the field at a path, or of the innermost field around it that the document has.
func (o *Own[T]) At(path string) Place { return o.doc.at(path) }

// DecodeOwn decodes the objects of a kind of hookgate.dev in a file, without their status. Unknown members are
// problems, and so are objects of other kinds unless they are passed over. A misspelt kind is always one. With
// problems, there are no objects.
func DecodeOwn[T any](f *File, kind string, passOver bool) ([]Own[T], []Problem) {
	docs, problems := f.documents()
	objects := make([]Own[T], 0, len(docs))
	for i := range docs {
		d := &docs[i]
		switch {
		case d.kind == kind:
			o := new(T)
			problems = append(problems, d.decodeOwn(o)...)
			objects = append(objects, Own[T]{o, d})
		case !passOver, misspelt(d.kind, kind):
			problems = append(problems, d.problemAt("kind", fmt.Errorf("kind: want %s, got %s", kind, d.kind)))
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return objects, nil
}

// misspelt reports whether a kind has the name of another but for two letters, or for upper and lower case.
func misspelt(kind, of string) bool {
	return len(kind) <= len(of)+2 && text.EditDistance(strings.ToLower(kind), strings.ToLower(of)) <= 2
}
