// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "fmt"

// DecodeOwn decodes the objects in a file, all of which have to be of one kind of hookgate.dev that is no registration,
// such as HandlerChainTest. Unknown members are problems. With problems, there are no objects.
func DecodeOwn[T any](file string, content []byte, kind string) ([]*T, []Problem) {
	docs, problems := (&File{file: file, content: content}).documents()
	objects := make([]*T, 0, len(docs))
	for i := range docs {
		d := &docs[i]
		if d.kind != kind {
			problems = append(problems, d.problemAt("kind", fmt.Errorf("kind: want %s, got %s", kind, d.kind)))
			continue
		}
		o := new(T)
		problems = append(problems, d.decodeOwn(o)...)
		objects = append(objects, o)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return objects, nil
}
