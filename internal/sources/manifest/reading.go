// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
)

// reading is what a file with this content says by itself, whatever the other files and earlier contents say. It is
// immutable. An inventory keeps it, so that a change of one file has none of the others parsed again: BenchmarkNext
// takes 300 ms and 350,000 allocations for 2,000 files, and 6 ms and 2,300 for a change of one.
//
// What tells files apart is their content, which is in memory anyway: size, time and inode may be the same for two
// contents, and all differ for the same one when a mounted ConfigMap is exchanged.
type reading struct {
	file     File
	words    *Decoder
	problems []Problem // of the file; those of its documents are in the entries
	entries  []entry
	count    int // of all problems
}

// entry is what one document says.
type entry struct {
	kind     string
	object   *Object // nil if the document identifies none
	problems []Problem
}

// has reports whether r is what reading m returns.
func (r *reading) has(m *File, words *Decoder) bool {
	return r != nil && r.words == words && r.file.err == nil && m.err == nil && r.file.Equal(m)
}

// moved returns r as the reading of m, whose content is equal, so that the content is in memory once.
func (r *reading) moved(m *File) *reading {
	same := *r
	same.file = *m
	return &same
}

// readable returns the JSON of what can be read of an object, whose file it reads again.
func (c *claim) readable() []byte {
	docs, _ := c.reading.file.documents()
	return docs[c.entry].readable()
}

// read reads m.
func read(m *File, words *Decoder) *reading {
	docs, problems := m.documents()
	r := &reading{file: *m, words: words, problems: problems, entries: make([]entry, len(docs))}
	r.count = len(problems)
	for i := range docs {
		o, found := decode(&docs[i], words)
		r.entries[i] = entry{kind: docs[i].kind, object: o, problems: found}
		if o != nil && o.closed != nil {
			r.entries[i].kind = o.closed.Kind // which may have been misspelt
		}
		if o != nil && o.Valid() && words.keepContent && allkinds.Is(docs[i].kind) {
			if members, err := docs[i].node.Members(limits.ManifestBytes); err == nil {
				o.content = object(members)
			}
		}
		r.count += len(found)
	}
	return r
}
